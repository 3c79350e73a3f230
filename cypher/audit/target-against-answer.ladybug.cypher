MATCH (e:Example)-[o:HAS_OPTION]->(p:Paper)
WHERE e.task = 'multiple-choice' AND o.label = e.answer AND p.corpusid <> e.target
RETURN e.qid AS qid, e.answer AS answer, e.target AS target, p.corpusid AS corpusid
ORDER BY qid
