// The true path of an example, step by step from its source to its target; none when the target cannot be reached.
// param qid STRING: the beginning of its qid
// needs published examples
MATCH (p)-[t:ON_TRUE_PATH]->(q)
WHERE t.qid STARTS WITH $qid
RETURN t.qid AS qid, t.step AS step, p.corpusid AS from_id, p.title AS from_title,
       CASE WHEN t.cites THEN 'cites' ELSE 'is cited by' END AS how, q.corpusid AS to_id, q.title AS to_title
ORDER BY qid, step
