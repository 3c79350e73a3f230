// The papers that one paper cites and that cite it.
// param id INT: the corpusid of the paper
// param limit INT = 50: how many rows at most
MATCH (p:Paper {corpusid: $id})-[:CITES]->(q:Paper)
RETURN 'cites' AS direction, q.corpusid AS corpusid, q.title AS title, q.publicationdate AS publicationdate
ORDER BY corpusid LIMIT $limit
UNION ALL
MATCH (p:Paper {corpusid: $id})<-[:CITES]-(q:Paper)
RETURN 'cited_by' AS direction, q.corpusid AS corpusid, q.title AS title, q.publicationdate AS publicationdate
ORDER BY corpusid LIMIT $limit
