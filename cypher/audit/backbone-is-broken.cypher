// Two neighbours on the backbone of a task component are not connected in the text.
MATCH (e:Example)-[:HAS_COMPONENT]->(c:Component)-[m:CONTAINS]->(p:Paper), (c)-[n:CONTAINS]->(q:Paper)
WHERE c.role <> 'distractor' AND n.step = m.step + 1 AND n.step < 3 * e.k - 2
OPTIONAL MATCH (p)-[t:IN_TEXT]-(q)
WHERE t.qid = e.qid
WITH e, c, m.step AS step, count(t) AS links
WHERE links <> 1
RETURN e.qid AS qid, c.number AS component, step, links
ORDER BY qid, component, step
