// An example with its task components as its text shows them, its source and its target, and the true path.
// param qid STRING: the beginning of its qid
MATCH (e:Example)
WHERE e.qid STARTS WITH $qid
CALL (e) {
  MATCH path = (e)-[:HAS_SOURCE|HAS_TARGET]->()
  RETURN path
  UNION ALL
  MATCH (e)-[:HAS_COMPONENT]->(c:Component)
  WHERE c.role <> 'distractor'
  MATCH path = ()-[r:IN_TEXT {qid: e.qid}]->()
  WHERE r.component = c.index
  RETURN path
  UNION ALL
  MATCH path = ()-[:ON_TRUE_PATH {qid: e.qid}]->()
  RETURN path
}
RETURN path
