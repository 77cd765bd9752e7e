"""The pure middle stays pure: what projections and the vocabulary may import, read from source."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mesh_events
import projections

PURE = Path(projections.__file__).parent
VOCABULARY = Path(mesh_events.__file__).parent
OURS = {"mesh_events", "projections", "processors", "self_service", "local_platform"}


def modules(folder: Path) -> list[Path]:
    found = sorted(folder.rglob("*.py"))
    assert len(found) > 5
    return found


def imported(path: Path) -> Iterator[str]:
    """Full names of the modules that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def top(name: str) -> str:
    return name.partition(".")[0]


@pytest.mark.parametrize("path", modules(PURE), ids=lambda path: path.stem)
def test_projections_import_values_and_nothing_that_does_io(path: Path) -> None:
    allowed = sys.stdlib_module_names | {"immutables", "pydantic", "mesh_events", "projections"}
    assert {top(name) for name in imported(path)} <= allowed


@pytest.mark.parametrize("path", modules(PURE), ids=lambda path: path.stem)
def test_projections_have_no_clock_no_chance_no_world(path: Path) -> None:
    world = {"time", "random", "secrets", "os", "socket", "pathlib", "logging", "asyncio", "io"}
    assert not {top(name) for name in imported(path)} & world
    calls = {
        node.func.attr
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert not calls & {"now", "utcnow", "today", "uuid1", "uuid4", "uuid7"}


@pytest.mark.parametrize("path", modules(PURE), ids=lambda path: path.stem)
def test_only_replay_decodes(path: Path) -> None:
    edges = {"codec", "emit", "read", "kafka", "registry", "settings", "avro", "references"}
    ours = [name for name in imported(path) if name.startswith("mesh_events.")]
    used = {part for name in ours for part in name.split(".")[1:]}
    assert used & edges == ({"codec"} if path.stem == "replay" else set())


@pytest.mark.parametrize("path", modules(VOCABULARY), ids=lambda path: path.stem)
def test_the_vocabulary_knows_nothing_of_those_who_use_it(path: Path) -> None:
    assert {top(name) for name in imported(path)} & OURS <= {"mesh_events"}


def test_the_state_that_lost_decisions_would_give_is_seen_by_judges_alone() -> None:
    """By the governor's judgement and by whoever makes it again; never by rows or controllers."""
    root = PURE.parent
    folders = (PURE, *(root / name for name in ("processors", "self_service", "snapshots")))
    found = {
        str(path.relative_to(root))
        for folder in folders
        for path in modules(folder)
        if "projections.deciding.speculation" in set(imported(path))
    }
    assert found == {
        "processors/governor/governor.py",
        "self_service/cli/verification/rejudging.py",
    }


def test_reading_the_vocabulary_and_the_folds_loads_no_client_and_opens_no_socket() -> None:
    script = """
import socket, sys
def refuse(*_, **__):
    raise AssertionError("a socket at import")
socket.socket.__init__ = refuse
socket.create_connection = refuse
import mesh_events.codec, mesh_events.vocabulary
import projections.replay, projections.deciding.decide, projections.deciding.derived
import projections.rows, projections.checksum
heavy = {"confluent_kafka", "faust", "aiokafka", "pyspark", "structlog", "requests", "typer"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_no_module_of_the_sdk_connects_when_imported() -> None:
    paths = [path.relative_to(VOCABULARY.parent) for path in modules(VOCABULARY)]
    names = [".".join(path.with_suffix("").parts) for path in paths]
    script = f"""
import importlib, socket
def refuse(*_, **__):
    raise AssertionError("a socket at import")
socket.socket.connect = refuse
socket.create_connection = refuse
for name in {names!r}:
    importlib.import_module(name)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
