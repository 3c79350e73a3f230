MATCH (e:Example)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(a:Appearance)
WHERE c.role <> 'distractor'
WITH e, c, count(DISTINCT a.corpusid) AS papers
WHERE papers <> e.size
RETURN e.qid AS qid, c.number AS component, papers, e.size AS size
ORDER BY qid, component
