MATCH (e:Example)-[:HAS_COMPONENT]->(:Component)-[:CONTAINS]->(:Appearance)-[:OF]->(p:Paper)
WHERE p.publicationdate IS NULL OR p.publicationdate < e.cutoff_date
RETURN e.qid AS qid, p.corpusid AS corpusid, p.publicationdate AS publicationdate
ORDER BY qid, corpusid
