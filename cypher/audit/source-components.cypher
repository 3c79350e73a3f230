// An example has no component, or several, that claim to hold its source.
MATCH (e:Example)
OPTIONAL MATCH (e)-[:HAS_COMPONENT]->(c:Component)
WHERE c.role = 'source'
WITH e, count(c) AS found
WHERE found <> 1
RETURN e.qid AS qid, found
ORDER BY qid
