from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from gniah.loader.neo4j.homes import Home, Memory, State, default_home
from gniah.loader.neo4j.processes import Process
from gniah.loader.neo4j.releases import RELEASES
from gniah.records.errors import InputError


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "server")
    made.make()
    return made


def with_database(home: Home, release: str = "5.26") -> None:
    (home.folder / "data" / "databases" / "system").mkdir(parents=True)
    home.remember(State(RELEASES[release]))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folder_and_password_are_their_owners_alone(home: Home) -> None:
    said: list[str] = []
    home.secure_password(said.append)
    assert (mode(home.folder), mode(home.password_file), said) == (0o700, 0o600, [])
    first = home.password()
    assert len(first) == 32
    home.secure_password(said.append)
    assert home.password() == first
    other = Home(home.folder.with_name("other"))
    other.make()
    other.secure_password(said.append)
    assert other.password() != first


def test_a_password_that_others_could_read_is_closed_and_told(home: Home) -> None:
    home.secure_password(lambda _: None)
    home.password_file.chmod(0o644)
    said: list[str] = []
    home.secure_password(said.append)
    assert mode(home.password_file) == 0o600
    assert said == [f"warning: {home.password_file} could be read by others; now only you can"]


@pytest.mark.parametrize("left", [None, "", "\n"])
def test_data_without_their_password_are_not_given_another(home: Home, left: str | None) -> None:
    with_database(home)
    if left is not None:
        home.password_file.write_text(left, encoding="utf-8")
    with pytest.raises(InputError, match="the server's password is not here"):
        home.secure_password(lambda _: None)


def test_data_keep_their_release(home: Home) -> None:
    assert home.release(None).name == "5.26"
    assert home.release("2026.01").name == "2026.01"
    with_database(home, "2026.01")
    assert home.release(None).name == "2026.01"
    with pytest.raises(InputError, match=r"the data here are of release 2026\.01, not 5\.26"):
        home.release("5.26")


def test_what_is_remembered_comes_back(home: Home) -> None:
    assert home.state() is None
    state = State(RELEASES["5.26"], 7000, None, Process(12, "then"))
    home.remember(state)
    assert home.state() == state
    home.forget_process()
    assert home.state() == State(RELEASES["5.26"], 7000)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "gniah/graph-server/2"}, "written by a newer version"),
        ({"schema": "gniah/graph/1"}, "expected the schema"),
        ({"release": "4.4"}, "the release '4.4' is unknown"),
    ],
)
def test_a_state_of_another_kind_is_refused(home: Home, change: dict[str, str], words: str) -> None:
    home.remember(State(RELEASES["5.26"]))
    value = json.loads(home.state_file.read_text(encoding="utf-8"))
    home.state_file.write_text(json.dumps({**value, **change}), encoding="utf-8")
    with pytest.raises(InputError, match=words):
        home.state()


@pytest.mark.parametrize("http", [None, 7002])
def test_the_configuration_names_no_address_but_loopback(home: Home, http: int | None) -> None:
    home.configure(7001, http, Path("/jars/plugins"), Memory("1g", "64m"))
    lines = (home.folder / "conf" / "neo4j.conf").read_text(encoding="utf-8").splitlines()
    settings = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    addresses = {name: value for name, value in settings.items() if name.endswith("_address")}
    assert {value.partition(":")[0] for value in addresses.values()} == {"127.0.0.1"}
    assert addresses["server.bolt.listen_address"] == "127.0.0.1:7001"
    assert settings["server.http.enabled"] == ("false" if http is None else "true")
    assert settings["server.https.enabled"] == "false"
    assert settings["dbms.usage_report.enabled"] == "false"
    assert settings["dbms.security.auth_enabled"] == "true"
    assert settings["server.memory.heap.max_size"] == "1g"


def test_the_usual_home_is_in_the_users_folder_for_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GNIAH_NEO4J_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_home() == tmp_path / "gniah" / "neo4j"
    monkeypatch.setenv("GNIAH_NEO4J_HOME", str(tmp_path / "mine"))
    assert default_home() == tmp_path / "mine"
