// How many papers were published in each month.
MATCH (p:Paper)
WITH p.publicationdate.year AS year, p.publicationdate.month AS month
RETURN year, month, count(*) AS papers
ORDER BY year, month
