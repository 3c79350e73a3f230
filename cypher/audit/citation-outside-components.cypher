// The text of an example shows a citation of a paper that belongs to none of its components.
MATCH (e:Example)
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
WITH e, r, ends
WHERE any(end IN ends WHERE end.component IS NULL)
RETURN e.qid AS qid, startNode(r).corpusid AS citing, endNode(r).corpusid AS cited
ORDER BY qid, citing, cited
