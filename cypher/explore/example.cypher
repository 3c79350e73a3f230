// The settings of an example, and how much is in its components and in its text.
// param qid STRING: the beginning of its qid; all that begin so are shown
// needs published examples
MATCH (e:Example)
WHERE e.qid STARTS WITH $qid
CALL (e) {
  MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[i:CONTAINS]->()
  RETURN count(DISTINCT c) AS parts, count(i) AS papers
}
CALL (e) {
  MATCH ()-[r:IN_TEXT {qid: e.qid}]->()
  RETURN count(r) AS citations
}
RETURN e.qid AS qid, e.task AS task, e.answer AS answer, e.k AS k, e.size AS size, e.cutoff_date AS cutoff_date,
       e.source AS source, e.target AS target, parts AS components, papers, citations
ORDER BY qid
