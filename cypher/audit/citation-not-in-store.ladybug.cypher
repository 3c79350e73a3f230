MATCH (p:Paper)<-[:OF]-(a:Appearance)-[:IN_TEXT]->(:Appearance)-[:OF]->(q:Paper)
WHERE NOT EXISTS { MATCH (p)-[:CITES]->(q) }
RETURN a.qid AS qid, p.corpusid AS citing, q.corpusid AS cited
ORDER BY qid, citing, cited
