// How many papers are cited how often among the eligible ones; papers that nobody cites are left out.
// param limit INT = 50: how many rows
MATCH (p:Paper)<-[c:CITES]-(:Paper)
WITH p, count(c) AS in_degree
RETURN in_degree, count(p) AS papers
ORDER BY in_degree LIMIT $limit
