// Two components of one example hold the same paper.
MATCH (e:Example)
CALL (e) {
  MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(p)
  WITH p, min(c.index) AS one, max(c.index) AS other
  WHERE one <> other
  RETURN p.corpusid AS corpusid, one, other
}
RETURN e.qid AS qid, corpusid, one, other
ORDER BY qid, corpusid
