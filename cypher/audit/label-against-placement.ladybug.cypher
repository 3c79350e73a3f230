MATCH (e:Example)
WHERE e.task = 'yes-no'
OPTIONAL MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(a:Appearance)
WHERE c.role = 'source' AND a.corpusid = e.target
WITH e, count(a) AS reachable
WHERE (e.answer = 'YES' AND reachable <> 1) OR (e.answer = 'NO' AND reachable <> 0) OR NOT e.answer IN ['YES', 'NO']
RETURN e.qid AS qid, e.answer AS answer, reachable
ORDER BY qid
