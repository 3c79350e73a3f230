// The papers with the most citations among the eligible ones, the most cited first.
// param limit INT = 20: how many rows
MATCH (p:Paper)<-[c:CITES]-(:Paper)
RETURN p.corpusid AS corpusid, p.title AS title, count(c) AS cited_by
ORDER BY cited_by DESC, corpusid LIMIT $limit
