MATCH (e:Example)
OPTIONAL MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(a:Appearance)
WHERE c.role = 'source' AND a.step = e.k - 1 AND a.corpusid = e.source
WITH e, count(a) AS found
WHERE found <> 1
RETURN e.qid AS qid, e.source AS source
ORDER BY qid
