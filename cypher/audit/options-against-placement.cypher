// An option of a multiple-choice question is reachable and not the answer, or the answer and not reachable.
MATCH (e:Example)
WHERE e.task = 'multiple-choice'
MATCH (e)-[o:HAS_OPTION]->(q)
CALL (e, q) {
  MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(p)
  WHERE c.role = 'source' AND p.corpusid = q.corpusid
  RETURN count(*) AS reachable
}
WITH e, o.label AS label, q, reachable
WHERE (label = e.answer AND reachable <> 1) OR (label <> e.answer AND reachable <> 0)
RETURN e.qid AS qid, label, q.corpusid AS corpusid, reachable
ORDER BY qid, label
