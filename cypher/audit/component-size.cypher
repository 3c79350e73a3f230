// A task component has more or fewer distinct papers than its settings say.
MATCH (e:Example)
CALL (e) {
  MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(p)
  WHERE c.role <> 'distractor'
  RETURN c.index AS component, count(DISTINCT p) AS papers
}
WITH e, component, papers
WHERE papers <> e.size
RETURN e.qid AS qid, component, papers, e.size AS size
ORDER BY qid, component
