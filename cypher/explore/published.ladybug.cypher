MATCH (p:Paper)
WITH date_part('year', p.publicationdate) AS year, date_part('month', p.publicationdate) AS month
RETURN year, month, count(*) AS papers
ORDER BY year, month
