// Two papers of one example have the same normalised title.
MATCH (e:Example)-[:HAS_COMPONENT]->(:Component)-[:CONTAINS]->(p:Paper)
WITH e, p.title_key AS title_key, count(DISTINCT p) AS papers
WHERE papers > 1
RETURN e.qid AS qid, title_key, papers
ORDER BY qid, title_key
