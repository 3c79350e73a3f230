MATCH (:Component)-[:CONTAINS]->(a:Appearance)-[:OF]->(p:Paper)
WITH a.qid AS qid, p.title_key AS title_key, count(DISTINCT p.corpusid) AS papers
WHERE papers > 1
RETURN qid, title_key, papers
ORDER BY qid, title_key
