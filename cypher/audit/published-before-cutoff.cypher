// A paper of an example was published before the cutoff date, or has no date.
MATCH (e:Example)
MATCH (e)-[:HAS_COMPONENT]->(:Component)-[:CONTAINS]->(p)
WHERE p.publicationdate IS NULL OR p.publicationdate < e.cutoff_date
RETURN e.qid AS qid, p.corpusid AS corpusid, p.publicationdate AS publicationdate
ORDER BY qid, corpusid
