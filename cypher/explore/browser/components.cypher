// An example, its components, and the papers that each contains.
// param qid STRING: the beginning of its qid
MATCH path = (e:Example)-[:HAS_COMPONENT]->(:Component)-[:CONTAINS]->()
WHERE e.qid STARTS WITH $qid
RETURN path
