// The papers of an example: component by component, the backbone first, then in the order of growth.
// param qid STRING: the beginning of its qid
// needs published examples
MATCH (c:Component)-[i:CONTAINS]->(p)
WHERE c.qid STARTS WITH $qid
RETURN c.qid AS qid, c.`index` AS component, c.role AS role, i.step AS step, i.backbone AS backbone,
       p.corpusid AS corpusid, p.title AS title
ORDER BY qid, component, step
