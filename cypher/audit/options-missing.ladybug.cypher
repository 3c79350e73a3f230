MATCH (e:Example)
WHERE e.task = 'multiple-choice'
OPTIONAL MATCH (e)-[o:HAS_OPTION]->(p:Paper)
WITH e, count(DISTINCT p) AS offered, count(DISTINCT o.label) AS letters,
     CAST(sum(CASE WHEN o.label = e.answer THEN 1 ELSE 0 END) AS INT64) AS marked
WHERE offered <> 4 OR letters <> 4 OR marked <> 1
RETURN e.qid AS qid, offered, letters, marked
ORDER BY qid
