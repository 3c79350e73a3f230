// The target of a multiple-choice question is not the paper of the option that is its answer.
MATCH (e:Example)
WHERE e.task = 'multiple-choice'
MATCH (e)-[o:HAS_OPTION]->(p)
WITH e, o, p, coalesce(e.target, -1) AS target
WHERE o.label = e.answer AND p.corpusid <> target
RETURN e.qid AS qid, e.answer AS answer, target, p.corpusid AS corpusid
ORDER BY qid
