// An option of a multiple-choice question does not stand at the end of any component's true path.
MATCH (e:Example)
WHERE e.task = 'multiple-choice'
MATCH (e)-[o:HAS_OPTION]->(q)
CALL (e, q) {
  MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[i:CONTAINS]->(p)
  WHERE c.role <> 'distractor' AND i.step = 2 * e.k - 2 AND p.corpusid = q.corpusid
  RETURN count(*) AS found
}
WITH e, o, q, found
WHERE found <> 1
RETURN e.qid AS qid, o.label AS label, q.corpusid AS corpusid
ORDER BY qid, label
