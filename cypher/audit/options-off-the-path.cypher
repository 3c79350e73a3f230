// An option of a multiple-choice question does not stand at the end of any component's true path.
MATCH (e:Example)-[o:HAS_OPTION]->(p:Paper)
WHERE e.task = 'multiple-choice'
OPTIONAL MATCH (c:Component)-[m:CONTAINS]->(p)
WHERE c.qid = e.qid AND c.role <> 'distractor' AND m.step = 2 * e.k - 2
WITH e, o.label AS label, p, count(c) AS found
WHERE found <> 1
RETURN e.qid AS qid, label, p.corpusid AS corpusid
ORDER BY qid, label
