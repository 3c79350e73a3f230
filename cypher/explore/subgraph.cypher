// The citations that the text of an example shows, component by component.
// param qid STRING: the beginning of its qid
// needs published examples
MATCH (p)-[r:IN_TEXT]->(q)
WHERE r.qid STARTS WITH $qid
RETURN r.qid AS qid, r.component AS component, p.corpusid AS citing, p.title AS citing_title, q.corpusid AS cited,
       q.title AS cited_title
ORDER BY qid, component, citing, cited
