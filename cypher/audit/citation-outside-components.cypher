// The text of an example shows a citation of a paper that belongs to none of its components.
MATCH (p:Paper)-[t:IN_TEXT]->(q:Paper)
OPTIONAL MATCH (c:Component)-[:CONTAINS]->(p)
WHERE c.qid = t.qid
WITH p, t, q, count(c) AS citing_in
OPTIONAL MATCH (d:Component)-[:CONTAINS]->(q)
WHERE d.qid = t.qid
WITH p, t, q, citing_in, count(d) AS cited_in
WHERE citing_in = 0 OR cited_in = 0
RETURN t.qid AS qid, p.corpusid AS citing, q.corpusid AS cited
ORDER BY qid, citing, cited
