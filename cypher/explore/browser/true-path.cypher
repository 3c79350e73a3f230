// The true path of an example between its source and its target.
// param qid STRING: the beginning of its qid
MATCH (e:Example)
WHERE e.qid STARTS WITH $qid
CALL (e) {
  MATCH path = (e)-[:HAS_SOURCE|HAS_TARGET]->()
  RETURN path
  UNION ALL
  MATCH path = ()-[:ON_TRUE_PATH {qid: e.qid}]->()
  RETURN path
}
RETURN path
