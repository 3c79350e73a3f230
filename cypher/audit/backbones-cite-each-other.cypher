// In the store, a paper on the backbone of one task component cites one on the backbone of another.
MATCH (e:Example)
CALL (e) {
  MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[i:CONTAINS]->(q)
  WHERE c.role <> 'distractor' AND i.step < 3 * e.k - 2
  RETURN q, c.index AS component, null AS citation
  UNION ALL
  MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[i:CONTAINS]->(p)
  WHERE c.role <> 'distractor' AND i.step < 3 * e.k - 2
  MATCH (p)-[:CITES]->(q)
  RETURN q, null AS component, {component: c.index, citing: p.corpusid} AS citation
}
WITH e, q, collect(component) AS components, collect(citation) AS citations
UNWIND components AS component
UNWIND citations AS citation
WITH e, q, component, citation
WHERE component <> citation.component
RETURN e.qid AS qid, citation.citing AS citing, q.corpusid AS cited
ORDER BY qid, citing, cited
