MATCH (e:Example)
WHERE e.qid STARTS WITH $qid
OPTIONAL MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[i:CONTAINS]->()
WITH e, count(DISTINCT c.key) AS parts, count(i) AS papers
OPTIONAL MATCH ()-[r:IN_TEXT]->()
WHERE r.qid = e.qid
WITH e, parts, papers, count(r) AS citations
RETURN e.qid AS qid, e.task AS task, e.answer AS answer, e.k AS k, e.size AS size, e.cutoff_date AS cutoff_date,
       e.source AS source, e.target AS target, parts AS components, papers, citations
ORDER BY qid
