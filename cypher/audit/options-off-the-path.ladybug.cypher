MATCH (e:Example)-[o:HAS_OPTION]->(p:Paper)
WHERE e.task = 'multiple-choice'
OPTIONAL MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(a:Appearance)
WHERE c.role <> 'distractor' AND a.step = 2 * e.k - 2 AND a.corpusid = p.corpusid
WITH e, o.label AS label, p, count(a) AS found
WHERE found <> 1
RETURN e.qid AS qid, label, p.corpusid AS corpusid
ORDER BY qid, label
