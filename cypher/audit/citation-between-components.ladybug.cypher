MATCH (a:Appearance)-[:IN_TEXT]->(b:Appearance)
WHERE a.component >= 0 AND b.component >= 0 AND a.component <> b.component
RETURN a.qid AS qid, a.corpusid AS citing, b.corpusid AS cited
ORDER BY qid, citing, cited
