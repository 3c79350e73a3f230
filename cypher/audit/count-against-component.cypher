// The answer of a counting question is not the number of distinct papers in the source's component less one.
MATCH (e:Example)
WHERE e.task = 'counting'
CALL (e) {
  MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(p)
  WHERE c.role = 'source'
  RETURN count(DISTINCT p) AS papers
}
WITH e, papers
WHERE papers > 0 AND e.answer <> toString(papers - 1)
RETURN e.qid AS qid, e.answer AS answer, papers - 1 AS reachable
ORDER BY qid
