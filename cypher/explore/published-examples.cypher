// The examples that are published, and the papers in all components of each.
// param limit INT = 50: how many rows
// needs published examples
MATCH (e:Example)
OPTIONAL MATCH (e)-[:HAS_COMPONENT]->(:Component)-[i:CONTAINS]->()
RETURN e.qid AS qid, e.task AS task, e.answer AS answer, e.k AS k, e.size AS size, count(i) AS papers
ORDER BY qid LIMIT $limit
