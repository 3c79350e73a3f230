MATCH (:Component)-[:CONTAINS]->(a:Appearance)
WHERE a.role <> 'distractor' AND a.step > 0
OPTIONAL MATCH (a)-[:IN_TEXT]-(b:Appearance)
WHERE b.component = a.component AND b.step < a.step
WITH a, count(b) AS links
WHERE links <> 1
RETURN a.qid AS qid, a.component AS component, a.corpusid AS corpusid, links
ORDER BY qid, component, corpusid
