"""The pairs of Neo4j and Graph Data Science that were seen running together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Release:
    """A pair: versions, the server's main class, and the oldest Java that runs it.

    The artifacts stand in `poms/NAME.xml`. Graph Data Science has few versions in Maven's central repository, so a
    pair is not simply the newest of both.
    """

    name: str
    neo4j: str
    gds: str
    main_class: str
    java: int

    @property
    def folder(self) -> str:
        """Return the name of the folder that its jars are kept in."""
        return f"{self.neo4j}-gds-{self.gds}"

    @property
    def pom(self) -> bytes:
        """Return the Maven project that names its artifacts."""
        return (resources.files("gniah.loader.neo4j") / "poms" / f"{self.name}.xml").read_bytes()


RELEASES: Mapping[str, Release] = MappingProxyType(
    {
        release.name: release
        for release in (
            Release("5.26", "5.26.30", "2.13.9", "org.neo4j.server.CommunityEntryPoint", 17),
            Release("2026.01", "2026.01.4", "2.26.0", "org.neo4j.server.Neo4jCommunity", 21),
        )
    }
)
DEFAULT_RELEASE = "5.26"
