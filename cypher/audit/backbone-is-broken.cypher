// Two neighbours on the backbone of a task component are not connected in the text by one citation.
MATCH (e:Example)
CALL (e) {
  MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[i:CONTAINS]->()
  WHERE c.role <> 'distractor' AND i.step < 3 * e.k - 3
  RETURN c.index AS component, i.step AS step, 0 AS link
  UNION ALL
  CALL (e) {
    MATCH (p)-[r:IN_TEXT {qid: e.qid}]->(q)
    USING INDEX r:IN_TEXT(qid)
    UNWIND [p, q] AS paper
    RETURN paper, r, null AS place
    UNION ALL
    MATCH (e)-[:HAS_COMPONENT]->(c:Component)-[i:CONTAINS]->(paper)
    RETURN paper, null AS r, [c.index, i.step, c.role] AS place
  }
  WITH e, paper, collect(r) AS citations, collect(place) AS places
  UNWIND citations AS r
  UNWIND CASE places WHEN [] THEN [null] ELSE places END AS place
  WITH e, r, paper, min([place[0] <> r.component, place[0], place[1], place[2]]) AS place
  WITH e, r, collect({component: place[1], step: place[2], role: place[3]}) AS ends
  WITH e, ends[0] AS one, ends[1] AS other
  WHERE one.component = other.component AND one.role <> 'distractor' AND abs(one.step - other.step) = 1
  WITH e, one.component AS component, CASE WHEN one.step < other.step THEN one.step ELSE other.step END AS step
  WHERE step < 3 * e.k - 3
  RETURN component, step, 1 AS link
}
WITH e, component, step, sum(link) AS links
WHERE links <> 1
RETURN e.qid AS qid, component, step, links
ORDER BY qid, component, step
