// The text of an example shows a citation that the store does not hold in this direction.
MATCH (e:Example)
MATCH (p)-[r:IN_TEXT {qid: e.qid}]->(q)
USING INDEX r:IN_TEXT(qid)
WHERE NOT EXISTS { (p)-[:CITES]->(q) }
RETURN e.qid AS qid, p.corpusid AS citing, q.corpusid AS cited
ORDER BY qid, citing, cited
