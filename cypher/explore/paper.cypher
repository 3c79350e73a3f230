// One paper with its metadata and its degrees.
// param id INT: the corpusid of the paper
MATCH (p:Paper {corpusid: $id})
OPTIONAL MATCH (p)-[:CITES]->(q:Paper)
WITH p, count(q) AS cites
OPTIONAL MATCH (p)<-[:CITES]-(r:Paper)
RETURN p.corpusid AS corpusid, p.title AS title, p.authors AS authors, p.publicationdate AS publicationdate,
       p.venue AS venue, p.arxiv_id AS arxiv_id, cites, count(r) AS cited_by
