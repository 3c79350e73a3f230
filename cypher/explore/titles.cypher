// Papers whose normalised title contains some words, as lower-case letters and digits.
// param words STRING: the words
// param limit INT = 20: how many rows
MATCH (p:Paper)
WHERE p.title_key CONTAINS $words
RETURN p.corpusid AS corpusid, p.title AS title, p.publicationdate AS publicationdate
ORDER BY corpusid LIMIT $limit
