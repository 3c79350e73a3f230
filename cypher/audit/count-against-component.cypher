// The answer of a counting question is not the size of the source's component less one.
MATCH (e:Example)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(p:Paper)
WHERE e.task = 'counting' AND c.role = 'source'
WITH e, count(DISTINCT p) AS papers
WHERE e.answer <> toString(papers - 1)
RETURN e.qid AS qid, e.answer AS answer, papers - 1 AS reachable
ORDER BY qid
