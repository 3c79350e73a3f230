// Two components of one example hold the same paper.
MATCH (e:Example)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(p:Paper)<-[:CONTAINS]-(d:Component)
WHERE d.qid = e.qid AND c.number < d.number
RETURN e.qid AS qid, p.corpusid AS corpusid, c.number AS one, d.number AS other
ORDER BY qid, corpusid
