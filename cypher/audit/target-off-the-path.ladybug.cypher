MATCH (e:Example)
WHERE e.target >= 0
OPTIONAL MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(a:Appearance)
WHERE c.role <> 'distractor' AND a.step = 2 * e.k - 2 AND a.corpusid = e.target
WITH e, count(a) AS found
WHERE found <> 1
RETURN e.qid AS qid, e.target AS target
ORDER BY qid
