MATCH (a:Appearance)-[:OF]->(p:Paper)-[:CITES]->(q:Paper)<-[:OF]-(b:Appearance)
WHERE a.backbone AND b.backbone AND a.qid = b.qid AND a.component <> b.component
RETURN a.qid AS qid, p.corpusid AS citing, q.corpusid AS cited
ORDER BY qid, citing, cited
