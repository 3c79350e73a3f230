// The target of a question does not stand at the end of any component's true path.
MATCH (e:Example)
WHERE e.target >= 0
OPTIONAL MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[m:CONTAINS]->(p:Paper)
WHERE c.role <> 'distractor' AND m.step = 2 * e.k - 2 AND p.corpusid = e.target
WITH e, count(p) AS found
WHERE found <> 1
RETURN e.qid AS qid, e.target AS target
ORDER BY qid
