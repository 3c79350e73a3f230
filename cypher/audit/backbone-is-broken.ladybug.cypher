MATCH (e:Example)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(a:Appearance)
WHERE c.role <> 'distractor' AND a.step < 3 * e.k - 3
OPTIONAL MATCH (a)-[:IN_TEXT]-(b:Appearance)
WHERE b.component = a.component AND b.step = a.step + 1
WITH a, count(b) AS links
WHERE links <> 1
RETURN a.qid AS qid, a.component AS component, a.step AS step, links
ORDER BY qid, component, step
