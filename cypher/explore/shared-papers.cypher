// The examples that have papers in common with one, those with the most first.
// param qid STRING: the beginning of its qid
// param limit INT = 20: how many rows
// needs published examples
MATCH (c:Component)-[:CONTAINS]->(p:Paper)
WHERE c.qid STARTS WITH $qid
WITH DISTINCT c.qid AS one, p
MATCH (d:Component)-[:CONTAINS]->(p)
WHERE d.qid <> one
RETURN one, d.qid AS other, count(DISTINCT p.corpusid) AS papers
ORDER BY papers DESC, one, other LIMIT $limit
