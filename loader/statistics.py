"""What a citation graph is like, in a dozen numbers."""

from __future__ import annotations

import numpy as np

from gniah.cypher.store import GraphStore


def graph_statistics(store: GraphStore) -> dict[str, int | str]:
    """Return counts of a store: papers, citations, mutual pairs, components, degrees, and its cutoff."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    counts = store.counts()
    citing, cited = store.edges()
    nodes, places = np.unique(np.concatenate([citing, cited]), return_inverse=True)
    half = len(citing)
    rows, columns = places[:half], places[half:]
    matrix = coo_matrix((np.ones(half, dtype=np.int8), (rows, columns)), shape=(len(nodes), len(nodes)))
    _, labels = connected_components(matrix, directed=False)
    sizes = np.bincount(labels) if len(labels) else np.zeros(1, dtype=np.int64)
    pairs = rows.astype(np.int64) * max(len(nodes), 1) + columns
    mirrored = columns.astype(np.int64) * max(len(nodes), 1) + rows
    mutual = int(np.isin(pairs, mirrored).sum()) // 2
    in_degrees = np.bincount(columns, minlength=max(len(nodes), 1))
    out_degrees = np.bincount(rows, minlength=max(len(nodes), 1))
    return {
        "papers": counts["papers"],
        "citations": counts["citations"],
        "papers with usable metadata": len(store.usable_papers()[0]),
        "papers without a citation": counts["papers"] - len(nodes),
        "mutual citations (pairs)": mutual,
        "connected components (of two papers and more)": len(sizes) if half else 0,
        "largest component": int(sizes.max()),
        "most citations of one paper": int(in_degrees.max()),
        "most references of one paper": int(out_degrees.max()),
        "cutoff date": str(store.manifest.content.get("cutoff")),
        "graph": store.manifest.digest,
    }
