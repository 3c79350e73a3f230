// The text of an example connects papers of two components.
MATCH (e:Example)-[:HAS_COMPONENT]->(c:Component)-[:CONTAINS]->(p:Paper)-[t:IN_TEXT]->(q:Paper)<-[:CONTAINS]-(d:Component)
WHERE t.qid = e.qid AND d.qid = e.qid AND c.number <> d.number
RETURN e.qid AS qid, p.corpusid AS citing, q.corpusid AS cited
ORDER BY qid, citing, cited
