// Two papers of one example have the same normalised title.
MATCH (e:Example)
CALL (e) {
  MATCH (e)-[:HAS_COMPONENT]->(:Component)-[:CONTAINS]->(p)
  WITH coalesce(p.title_key, 'unknown ' + toString(p.corpusid)) AS title_key, count(DISTINCT p) AS papers
  WHERE papers > 1
  RETURN title_key, papers
}
RETURN e.qid AS qid, title_key, papers
ORDER BY qid, title_key
