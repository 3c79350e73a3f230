from __future__ import annotations

from pathlib import Path

import pytest

from gniah.cypher.addresses import ServerAddress, credentials, parse_address
from gniah.cypher.connection import server_version
from gniah.records.errors import InputError, StoreError, UsageFault


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USER", "PASSWORD", "PASSWORD_FILE"):
        monkeypatch.delenv(f"GNIAH_NEO4J_{name}", raising=False)


@pytest.mark.parametrize("folder", ["store", "a/b c", "bolt:7687", "C:\\store", "neo4j", ".", Path("bolt://x")])
def test_what_has_no_scheme_is_a_folder(folder: str | Path) -> None:
    assert parse_address(folder) == Path(folder)


@pytest.mark.parametrize(
    ("address", "uri", "database"),
    [
        ("bolt://localhost:7687", "bolt://localhost:7687", None),
        ("neo4j://localhost", "neo4j://localhost:7687", None),
        ("BOLT://127.0.0.1:1/", "bolt://127.0.0.1:1", None),
        ("neo4j+s://x.databases.example/neo4j", "neo4j+s://x.databases.example:7687", "neo4j"),
        ("bolt+ssc://[::1]:7688/my-graph.2026", "bolt+ssc://[::1]:7688", "my-graph.2026"),
    ],
)
def test_a_server_has_a_host_a_port_and_perhaps_a_database(address: str, uri: str, database: str | None) -> None:
    assert parse_address(address) == ServerAddress(uri, database)


def test_an_address_is_written_as_it_is_read() -> None:
    for text in ("bolt://localhost:7687", "neo4j+s://[::1]:7687/graph"):
        assert str(parse_address(text)) == text


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:7474",
        "https://localhost",
        "s3://bucket/graph",
        "://x",
        "bolt://",
        "bolt://:7687",
        "bolt://host:port",
        "bolt://host:99999",
        "bolt://host/two/names",
        "bolt://host/..",
        "bolt://host/a%2Fb",
        "bolt://host/x` RETURN 1",
        "bolt://host?policy=x",
        "bolt://host#x",
        "bolt://[::1",
    ],
)
def test_what_means_nothing_here_is_refused_with_an_example(address: str) -> None:
    with pytest.raises(UsageFault) as caught:
        parse_address(address)
    assert "bolt://" in str(caught.value.remedy)


@pytest.mark.parametrize("address", ["neo4j://user:hunter2@localhost", "bolt://hunter2@localhost", "bolt://:hunter2@x"])
def test_a_secret_in_an_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(UsageFault) as caught:
        parse_address(address)
    assert "hunter2" not in f"{caught.value.message} {caught.value.remedy}"
    assert "GNIAH_NEO4J_PASSWORD" in str(caught.value.remedy)


def test_a_password_of_the_environment_goes_before_that_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "password"
    file.write_text("of the file \n", encoding="utf-8")
    monkeypatch.setenv("GNIAH_NEO4J_PASSWORD_FILE", str(file))
    assert (credentials().user, credentials().password) == ("neo4j", "of the file ")
    monkeypatch.setenv("GNIAH_NEO4J_PASSWORD", "direct")
    monkeypatch.setenv("GNIAH_NEO4J_USER", "reader")
    assert (credentials().user, credentials().password) == ("reader", "direct")


def test_credentials_do_not_show_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNIAH_NEO4J_PASSWORD", "hunter2")
    assert "hunter2" not in f"{credentials()} {credentials()!r}"


def test_without_a_password_the_variables_are_named() -> None:
    with pytest.raises(UsageFault) as caught:
        credentials()
    assert "GNIAH_NEO4J_PASSWORD_FILE" in str(caught.value.remedy)


@pytest.mark.parametrize("content", [None, b"", b"\n"])
def test_a_file_without_a_password_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("GNIAH_NEO4J_PASSWORD_FILE", str(file))
    with pytest.raises(InputError, match="password"):
        credentials()


@pytest.mark.parametrize(
    ("agent", "version"), [("Neo4j/5.23.0", "5.23.0"), ("Neo4j/5.26.30", "5.26.30"), ("Neo4j/2026.01.4", "2026.01.4")]
)
def test_versions_that_will_do(agent: str, version: str) -> None:
    assert server_version(agent, "bolt://x") == version


@pytest.mark.parametrize("agent", ["Neo4j/5.22.0", "Neo4j/4.4.41", "Neo4j/3.5.0"])
def test_a_server_that_is_too_old_is_told(agent: str) -> None:
    with pytest.raises(StoreError, match=r"^bolt://x: Neo4j [0-9.]+ is too old; 5\.23 or newer is needed$"):
        server_version(agent, "bolt://x")


@pytest.mark.parametrize("agent", ["", "Memgraph/2.1", "Neo4j", "Neo4j/x.y"])
def test_another_product_is_told(agent: str) -> None:
    with pytest.raises(StoreError, match="knows Neo4j only"):
        server_version(agent, "bolt://x")
