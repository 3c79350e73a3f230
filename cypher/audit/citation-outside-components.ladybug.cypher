MATCH (a:Appearance)-[:IN_TEXT]->(b:Appearance)
WHERE a.component < 0 OR b.component < 0
RETURN a.qid AS qid, a.corpusid AS citing, b.corpusid AS cited
ORDER BY qid, citing, cited
