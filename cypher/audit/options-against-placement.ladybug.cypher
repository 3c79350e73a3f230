MATCH (e:Example)-[o:HAS_OPTION]->(p:Paper)
WHERE e.task = 'multiple-choice'
OPTIONAL MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(a:Appearance)
WHERE c.role = 'source' AND a.corpusid = p.corpusid
WITH e, o.label AS label, p, count(a) AS reachable
WHERE (label = e.answer AND reachable <> 1) OR (label <> e.answer AND reachable <> 0)
RETURN e.qid AS qid, label, p.corpusid AS corpusid, reachable
ORDER BY qid, label
