// A task has more or fewer components than it needs.
MATCH (e:Example)
OPTIONAL MATCH (e)-[:HAS_COMPONENT]->(c:Component)
WHERE c.role <> 'distractor'
WITH e, count(c) AS found
WHERE found <> e.components
RETURN e.qid AS qid, found, e.components AS needed
ORDER BY qid
