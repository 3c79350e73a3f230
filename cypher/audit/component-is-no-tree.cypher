// A paper of a task component hangs on none or on several of the papers before it, so the component is no tree.
MATCH (e:Example)-[:HAS_COMPONENT]->(c:Component)-[m:CONTAINS]->(p:Paper)
WHERE c.role <> 'distractor' AND m.step > 0
WITH e, c, m, p, COUNT {
  MATCH (p)-[t:IN_TEXT]-(q:Paper)<-[n:CONTAINS]-(d:Component)
  WHERE t.qid = e.qid AND d.key = c.key AND n.step < m.step
} AS links
WHERE links <> 1
RETURN e.qid AS qid, c.number AS component, p.corpusid AS corpusid, links
ORDER BY qid, component, corpusid
