// The target of a question does not stand at the end of any component's true path.
MATCH (e:Example)
WHERE e.target >= 0
CALL (e) {
  MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[i:CONTAINS]->(p)
  WHERE c.role <> 'distractor' AND i.step = 2 * e.k - 2 AND p.corpusid = e.target
  RETURN count(*) AS found
}
WITH e, found
WHERE found <> 1
RETURN e.qid AS qid, e.target AS target
ORDER BY qid
