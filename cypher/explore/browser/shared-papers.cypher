// Two examples and the papers that stand in both.
// param one STRING: the beginning of the qid of one
// param other STRING: the beginning of the qid of the other
// param limit INT = 100: how many papers at most
MATCH (e:Example)-[:HAS_COMPONENT]->(:Component)-[:CONTAINS]->(p)
WHERE e.qid STARTS WITH $one
WITH DISTINCT e, p
MATCH (f:Example)-[:HAS_COMPONENT]->(d:Component)-[:CONTAINS]->(p)
WHERE f.qid STARTS WITH $other AND f <> e
WITH e, f, p ORDER BY p.corpusid LIMIT $limit
MATCH path = (e)-[:HAS_COMPONENT]->(:Component)-[:CONTAINS]->(p)<-[:CONTAINS]-(:Component)<-[:HAS_COMPONENT]-(f)
RETURN path
