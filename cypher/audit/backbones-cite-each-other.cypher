// In the store, a paper on the backbone of one task component cites one on the backbone of another.
MATCH (e:Example)-[:HAS_COMPONENT]->(c:Component)-[m:CONTAINS]->(p:Paper)-[:CITES]->(q:Paper)<-[n:CONTAINS]-(d:Component)
WHERE d.qid = e.qid AND c.number <> d.number AND m.step < 3 * e.k - 2 AND n.step < 3 * e.k - 2
  AND c.role <> 'distractor' AND d.role <> 'distractor'
RETURN e.qid AS qid, p.corpusid AS citing, q.corpusid AS cited
ORDER BY qid, citing, cited
