// The source of a question does not stand at the beginning of its component's true path.
MATCH (e:Example)
CALL (e) {
  MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[i:CONTAINS]->(p)
  WHERE c.role = 'source' AND i.step = e.k - 1 AND p.corpusid = e.source
  RETURN count(*) AS found
}
WITH e, found
WHERE found <> 1
RETURN e.qid AS qid, e.source AS source
ORDER BY qid
