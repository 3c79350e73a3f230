// The source of a question does not stand at the beginning of its component's true path.
MATCH (e:Example)
OPTIONAL MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[m:CONTAINS]->(p:Paper)
WHERE c.role = 'source' AND m.step = e.k - 1 AND p.corpusid = e.source
WITH e, count(p) AS found
WHERE found <> 1
RETURN e.qid AS qid, e.source AS source
ORDER BY qid
