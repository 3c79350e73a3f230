"""Which cluster is meant: its master as it was given, or as Spark's own configuration names it."""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import shlex
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gniah.records.errors import EnvironmentFault, MissingDependency, UsageFault

# Seconds: until a free core counts as not to be had, and until a master that does not answer counts as away.
PATIENCE = 300
_ANSWER = 10.0

_KNOWN = re.compile(r"local(\[.*\])?|local-cluster\[.*\]|spark://.+|yarn|k8s://.+")
_IN_FILE = re.compile(r"^[ \t]*spark\.master(?:[ \t]*[=:][ \t]*|[ \t]+)(\S+)", re.MULTILINE)
_AS_IN = "as in --spark-master spark://HOST:7077"


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """A cluster by its master (`spark://HOST:PORT`, `yarn`, `k8s://…`, `local[N]`).

    `patience` says for how many seconds none of its cores may be free before the work is given up.
    """

    master: str
    patience: float = PATIENCE


def find_cluster(master: str | None = None, *, patience: float = PATIENCE) -> SparkCluster:
    """Return the cluster of a master, or without one that of Spark's configuration, after a look whether it is there.

    The configuration is a context that this process has, `PYSPARK_SUBMIT_ARGS`, `spark-defaults.conf`, or `MASTER`,
    in this order. Raises MissingDependency without pyspark or Java, UsageFault when no master is named anywhere or
    the name is not understood, EnvironmentFault when nothing answers there.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise MissingDependency("work on Spark needs the package pyspark", remedy="pip install 'gniah[spark]'")
    found = master or next(_configured(), None)
    if found is None:
        raise UsageFault("no Spark master is given, and Spark's configuration names none", remedy=_AS_IN)
    if not _KNOWN.fullmatch(found):
        connect = found.startswith("sc://")
        raise UsageFault(
            f"{found!r} is no Spark master{', but an address of Spark Connect, which runs no jobs' if connect else ''}",
            remedy=f"{_AS_IN}, or yarn, or k8s://HOST:PORT",
        )
    _need_java()
    if found.startswith("spark://"):
        _look_for(found)
    return SparkCluster(found, patience)


def _configured() -> Iterator[str]:
    """Yield the masters that Spark's configuration names, the one that counts first."""
    active = getattr(getattr(sys.modules.get("pyspark"), "SparkContext", None), "_active_spark_context", None)
    if active is not None:
        yield str(active.master)
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    for word, following in itertools.pairwise([*words, ""]):
        if word == "--master" or following.startswith("spark.master="):
            yield following.removeprefix("spark.master=")
        elif word.startswith("--master="):
            yield word.removeprefix("--master=")
    home = os.environ.get("SPARK_CONF_DIR") or Path(os.environ.get("SPARK_HOME", os.devnull), "conf")
    defaults = Path(home, "spark-defaults.conf")
    if defaults.is_file():
        yield from _IN_FILE.findall(defaults.read_text(encoding="utf-8", errors="replace"))[-1:]
    if os.environ.get("MASTER"):
        yield os.environ["MASTER"]


def _need_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which(str(Path(home, "bin", "java")) if home else "java") is None:
        raise MissingDependency(
            f"Spark needs Java, and there is none {f'in JAVA_HOME ({home})' if home else 'on the PATH'}",
            remedy="install Java 17 or newer (Debian: openjdk-17-jre-headless), or set JAVA_HOME",
        )


def _look_for(master: str) -> None:
    """Raise EnvironmentFault when none of the hosts of a standalone cluster's master takes a connection.

    Spark itself would try for a minute, and say why in its log only.
    """
    reasons = []
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise UsageFault(f"{master!r} lacks a host or a port", remedy=_AS_IN)
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()
        except (OSError, UnicodeError) as error:
            reasons.append(f"{place}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    raise EnvironmentFault(
        f"{master}: no Spark master answers there ({'; '.join(reasons)})",
        remedy="start the cluster, or check --spark-master",
    )


__all__ = ["PATIENCE", "SparkCluster", "find_cluster"]
