"""The paper, as the graph store gives it."""

from __future__ import annotations

import datetime
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Paper:
    """One eligible paper. Texts are in their shown form; `title_key` is the normalised title.

    `authors` are names in their published order. `venue` is None when none is known, `arxiv_id` when the paper
    is not on arXiv.
    """

    corpusid: int
    title: str
    title_key: str
    authors: tuple[str, ...]
    publicationdate: datetime.date | None
    venue: str | None = None
    arxiv_id: str | None = None

    @property
    def usable(self) -> bool:
        """Whether the paper has usable metadata (GraphNIAH A.2.1): a title that identifies it, and an author."""
        return bool(self.title_key) and bool(self.authors)
