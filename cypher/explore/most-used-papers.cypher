// The papers that stand in the most examples.
// param limit INT = 20: how many rows
// needs published examples
MATCH (c:Component)-[:CONTAINS]->(p:Paper)
RETURN p.corpusid AS corpusid, p.title AS title, count(DISTINCT c.qid) AS examples
ORDER BY examples DESC, corpusid LIMIT $limit
