// Pairs of papers that cite each other.
// param limit INT = 50: how many rows
MATCH (a:Paper)-[:CITES]->(b:Paper)-[:CITES]->(c:Paper)
WHERE a.corpusid = c.corpusid AND a.corpusid < b.corpusid
RETURN a.corpusid AS one, b.corpusid AS other, a.title AS one_title, b.title AS other_title
ORDER BY one, other LIMIT $limit
