"""The files of docker/, checked by what needs no engine."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DOCKER = ROOT / "docker"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    value = yaml.safe_load((DOCKER / "compose.yaml").read_text(encoding="utf-8"))
    assert isinstance(value, dict)
    return value


def test_the_services_have_what_they_name(compose: dict[str, Any]) -> None:
    assert set(compose) == {"name", "services", "volumes"}
    for service in compose["services"].values():
        for volume in service["volumes"]:
            assert volume.partition(":")[0] in compose["volumes"]
        for other in service.get("depends_on", {}):
            assert "healthcheck" in compose["services"][other]
    build = compose["services"]["gniah"]["build"]
    assert (DOCKER / build["context"] / build["dockerfile"]).resolve() == DOCKER / "Dockerfile"


def test_no_password_is_written_down_and_none_is_a_default(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        values = [str(value) for name, value in service["environment"].items() if "AUTH" in name or "PASSWORD" in name]
        assert values
        for value in values:
            assert re.fullmatch(r"(neo4j/)?\$\{GNIAH_NEO4J_PASSWORD:\?[^}]+\}", value)


def test_neo4j_is_reached_from_this_machine_only_and_reports_nothing_home(compose: dict[str, Any]) -> None:
    neo4j = compose["services"]["neo4j"]
    assert [port.partition(":")[0] for port in neo4j["ports"]] == ["127.0.0.1", "127.0.0.1"]
    environment = neo4j["environment"]
    assert environment["NEO4J_dbms_usage__report_enabled"] == "false"
    assert environment["NEO4J_client_allow__telemetry"] == "false"
    assert environment["NEO4J_PLUGINS"] == '["graph-data-science"]'
    assert set(environment) >= {"NEO4J_server_memory_heap_max__size", "NEO4J_server_memory_pagecache_size"}
    # A single $ would be taken for a variable of compose.
    assert "$${NEO4J_AUTH#neo4j/}" in neo4j["healthcheck"]["test"][1]


def test_the_health_check_finds_the_password(compose: dict[str, Any], tmp_path: Path) -> None:
    line = compose["services"]["neo4j"]["healthcheck"]["test"][1].replace("$$", "$")
    shell = tmp_path / "cypher-shell"
    shell.write_text('#!/bin/sh\necho "$NEO4J_USERNAME|$NEO4J_PASSWORD|$*"\n', encoding="utf-8")
    shell.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        check=True,
        capture_output=True,
        encoding="utf-8",
        env={"PATH": f"{tmp_path}:/bin:/usr/bin", "NEO4J_AUTH": "neo4j/a/b c"},
    )
    assert done.stdout == "neo4j|a/b c|RETURN gds.version()\n"


def test_the_image_runs_without_rights_and_copies_what_is_there() -> None:
    lines = (DOCKER / "Dockerfile").read_text(encoding="utf-8").splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users == ["gniah"]
    assert lines.index("USER gniah") < next(i for i, line in enumerate(lines) if line.startswith("CMD "))
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    kept = [line[1:] for line in ignored if line.startswith("!")]
    assert all((ROOT / name).exists() for name in kept)
    rooms = {
        line.split("=")[1].strip()
        for line in (ROOT / "setup.cfg").read_text(encoding="utf-8").splitlines()
        if re.match(r"    gniah\.\w+ = \w+$", line)
    }
    assert rooms < set(kept)
    assert ".ci/constraints.txt" in kept


def test_compose_takes_the_file(tmp_path: Path) -> None:
    docker = shutil.which("docker")
    words = [docker or "docker", "compose"]
    if docker is None or subprocess.run([*words, "version"], check=False, capture_output=True).returncode != 0:
        pytest.skip("docker's compose plugin is not installed")
    for password, code in (("a-password", 0), ("", 1)):
        done = subprocess.run(
            [*words, "--file", str(DOCKER / "compose.yaml"), "config", "--quiet"],
            check=False,
            capture_output=True,
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "GNIAH_NEO4J_PASSWORD": password},
        )
        assert (done.returncode != 0) == bool(code), done.stderr
