// A yes-no answer does not match where the target stands.
MATCH (e:Example)
WHERE e.task = 'yes-no'
CALL (e) {
  MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(p)
  WHERE c.role = 'source' AND p.corpusid = e.target
  RETURN count(*) AS reachable
}
WITH e, reachable
WHERE (e.answer = 'YES' AND reachable <> 1) OR (e.answer = 'NO' AND reachable <> 0) OR NOT e.answer IN ['YES', 'NO']
RETURN e.qid AS qid, e.answer AS answer, reachable
ORDER BY qid
