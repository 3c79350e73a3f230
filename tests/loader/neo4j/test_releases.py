from __future__ import annotations

from xml.etree import ElementTree

import pytest

from gniah.loader.neo4j.releases import DEFAULT_RELEASE, RELEASES, Release

POM = {"m": "http://maven.apache.org/POM/4.0.0"}


def artifacts(release: Release) -> dict[str, str]:
    """Return the version of each artifact that a release's pom names."""
    root = ElementTree.fromstring(release.pom)
    values = {node.tag.partition("}")[2]: node.text or "" for node in root.find("m:properties", POM) or ()}
    found = {}
    for node in root.iterfind("m:dependencies/m:dependency", POM):
        group, name, version = (node.findtext(f"m:{part}", "", POM) for part in ("groupId", "artifactId", "version"))
        found[f"{group}:{name}"] = values[version.removeprefix("${").removesuffix("}")]
    return found


@pytest.mark.parametrize("release", RELEASES.values(), ids=str)
def test_the_pom_names_the_versions_of_the_pair(release: Release) -> None:
    found = artifacts(release)
    assert {found[name] for name in found if name.startswith("org.neo4j.gds:")} == {release.gds}
    server = {"org.neo4j.app:neo4j-server", "org.neo4j:neo4j", "org.neo4j:neo4j-import-tool"}
    assert {name: found[name] for name in server} == dict.fromkeys(server, release.neo4j)
    assert {"org.neo4j.gds:proc", "org.neo4j.gds:opengds-extension"} < set(found)


def test_the_pairs_are_those_that_were_seen_running() -> None:
    assert [(each.name, each.neo4j, each.gds, each.java) for each in RELEASES.values()] == [
        ("5.26", "5.26.30", "2.13.9", 17),
        ("2026.01", "2026.01.4", "2.26.0", 21),
    ]
    assert DEFAULT_RELEASE == "5.26"
