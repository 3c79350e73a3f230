// A paper and the papers that it cites or that cite it, in the whole citation graph.
// param id INT: the corpusid of the paper
// param limit INT = 100: how many citations at most
MATCH path = (:Paper {corpusid: $id})-[:CITES]-(:Paper)
RETURN path LIMIT $limit
