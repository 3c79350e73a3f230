MATCH (e:Example)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(a:Appearance)
WHERE e.task = 'counting' AND c.role = 'source'
WITH e, count(DISTINCT a.corpusid) AS papers
WHERE e.answer <> CAST(papers - 1 AS STRING)
RETURN e.qid AS qid, e.answer AS answer, papers - 1 AS reachable
ORDER BY qid
