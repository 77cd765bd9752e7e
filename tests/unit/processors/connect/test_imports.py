"""The worker calls Kafka, registries, Connect and Spark, and no address out of a config.

Read from the source: which modules import what opens connections, and what the worker imports.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import processors

ROOT = Path(processors.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
OURS = ("mesh_events", "projections", "processors", "snapshots", "spark_streams", "schemas")
OPENS_CONNECTIONS = frozenset(
    {
        *("aiohttp", "aiokafka", "confluent_kafka", "faust", "ftplib", "http", "httpx", "kafka"),
        *("mysql", "paramiko", "psycopg", "psycopg2", "pymysql", "pyspark", "requests", "smtplib"),
        *("socket", "socketserver", "sqlalchemy", "ssl", "telnetlib", "urllib3", "websockets"),
        *("urllib.request", "xmlrpc"),
    }
)
KAFKA, FAUST, HTTP = {"confluent_kafka"}, {"faust"}, {"requests"}
ALLOWED = {
    "__main__": FAUST,
    "acls.kafka": KAFKA,
    "acls.wire": {"aiokafka"},
    "worker.app": FAUST,
    "worker.bounded_web": {"aiohttp", "faust"},
    "log.checkpoint_store": KAFKA,
    "clusters.kafka": KAFKA,
    "lineage.events": KAFKA,
    "lineage.reader": KAFKA,
    "log.consumer": {"aiokafka", "faust"},
    "mirror.engine": KAFKA,
    "own_topics.described": KAFKA,
    "worker.preflight": KAFKA,
    "governor.quarantine": KAFKA,
    "governor.row_writer": KAFKA,
    # Connect's own REST API
    "connect.rest": HTTP,
    # the registries of clusters
    "registries.rest": HTTP,
    "http_deadline": {"requests", "socket", "urllib3"},
    # the receiver of lineage that the operator names
    "lineage.receiver": {"requests", "urllib3"},
    # used by `sdm`, on the machine of the person who adds a connector
    "connect.databases": {"psycopg", "socket"},
}
"""Module of `processors` -> what it may import of that."""
BY_SDM = {"databases", "captured_tables", "sink_tables"}
"""Modules of `processors.connect` that ask a database."""


def imported(path: Path) -> Iterator[str]:
    """Full names of the modules that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        if isinstance(node, ast.Call) and _loads(node.func):
            constants = (one for one in node.args if isinstance(one, ast.Constant))
            yield from (one.value for one in constants if isinstance(one.value, str))


def _loads(function: ast.expr) -> bool:
    name = getattr(function, "id", None) or getattr(function, "attr", "")
    return name in ("import_module", "__import__")


def opens(path: Path) -> set[str]:
    """What of `OPENS_CONNECTIONS` a file imports."""
    names = {name for full in imported(path) for name in (full, full.partition(".")[0])}
    return names & OPENS_CONNECTIONS


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def source(name: str) -> Path | None:
    """The file of a module of ours, None where it is another's or no module."""
    if name.partition(".")[0] not in OURS:
        return None
    base = ROOT.parent.joinpath(*name.split("."))
    places = (base.with_suffix(".py"), base / "__init__.py")
    return next((place for place in places if place.exists()), None)


def reached(*starts: str) -> dict[str, Path]:
    """Every module of ours that the starts import, and what those import."""
    found: dict[str, Path] = {}
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        path = source(name)
        if path is None or name in found:
            continue
        found[name] = path
        parts = name.split(".")
        waiting += [".".join(parts[:length]) for length in range(1, len(parts))]
        waiting += imported(path)
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_opens_connections_only_where_it_is_named_here(path: Path) -> None:
    assert opens(path) == ALLOWED.get(name_of(path), set())


def test_each_module_that_is_named_here_is_there() -> None:
    assert set(ALLOWED) <= {name_of(path) for path in MODULES}


def test_the_worker_reaches_no_module_that_asks_a_database() -> None:
    found = reached("processors.__main__", "processors.worker.app")

    assert "processors.controllers.connectors.connectors" in found
    assert "processors.connect.cluster" in found
    assert not {f"processors.connect.{name}" for name in BY_SDM} & set(found)
    assert not {name for path in found.values() for name in imported(path)} & {"psycopg"}


def test_a_module_that_asks_a_database_would_be_found() -> None:
    assert "processors.connect.databases" in reached("processors.connect.captured_tables")
