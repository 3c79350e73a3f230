MATCH (:Component)-[:CONTAINS]->(a:Appearance)
WITH a.qid AS qid, a.corpusid AS corpusid, min(a.component) AS one, max(a.component) AS other
WHERE one <> other
RETURN qid, corpusid, one, other
ORDER BY qid, corpusid
