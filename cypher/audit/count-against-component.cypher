// The answer of a counting question is not the number of distinct papers in the source's component less one.
MATCH (e:Example)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(a:Appearance)
WHERE e.task = 'counting' AND c.role = 'source'
WITH e, count(DISTINCT a.corpusid) AS papers
WHERE e.answer <> toString(papers - 1)
RETURN e.qid AS qid, e.answer AS answer, papers - 1 AS reachable
ORDER BY qid
