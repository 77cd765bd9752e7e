"""The reference says what the code does: vectors, codes, checks and crash points."""

import ast
import json
import re
from base64 import urlsafe_b64decode
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from mesh_events.codec import encode
from mesh_events.facts import DriftKind
from mesh_events.integrity.checkpoint import Checkpoint
from mesh_events.integrity.leaf import leaf_hash
from mesh_events.record import FaultCode, Record
from mesh_events.signing import SigningKey, decode_public
from mesh_events.topics import MAX_INTENT_BYTES, MAX_LOG_BYTES, MAX_RECORD_BYTES
from mesh_events.vocabulary import EVENTS
from processors.controllers.links.links import Copying
from processors.controllers.statements.statements import Streaming
from processors.own_topics.findings import Code as OwnTopicCode
from projections.catalog import SCHEMA_REGISTERED
from projections.deciding.decide import LONGEST_ID
from projections.deciding.intents import AHEAD_MS, WINDOW_MS
from projections.rules.access import TARGET_FREE
from projections.rules.catalog import TOPIC_EXISTS
from projections.rules.connectors import CONNECTOR_SOUND
from projections.rules.identity import CLUSTER_REACHABLE
from projections.rules.names import LONGEST_TEXT
from projections.statements import DESTINATION_FREE, STATEMENT_SOUND

REPOSITORY = Path(__file__).parents[3]
PACKAGES = ("mesh_events", "projections", "processors", "spark_streams", "self_service")
POSITIONS = {
    "require": 1,
    "Finding": 1,
    "Rejected": 0,
    "Refusal": 0,
    "RefusedError": 0,
    "CopyError": 0,
    "SqlError": 0,
    "EngineError": 0,
    "MismatchError": 0,
    "ChainBreakError": 0,
    "IntegrityError": 0,
}
"""Where the code stands among the arguments of each call that makes one."""


def text(name: str) -> str:
    return (REPOSITORY / "docs" / name).read_text("utf-8")


def calls() -> Iterator[ast.Call]:
    """Every call in the packages."""
    for package in PACKAGES:
        for path in (REPOSITORY / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call):
                    yield node


def called(node: ast.Call) -> str:
    return getattr(node.func, "id", None) or getattr(node.func, "attr", "")


def texts(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
            yield node.value
        if isinstance(node, ast.JoinedStr):
            yield from texts(node.values)


def codes() -> set[str]:
    """Every code that the project can answer with."""
    found = {str(code) for code in FaultCode}
    for node in calls():
        at = POSITIONS.get(called(node))
        if at is not None:
            found |= set(texts(node.args[at : at + 1]))
            found |= set(texts([each.value for each in node.keywords if each.arg == "code"]))
    return found


def explained() -> Iterator[tuple[str, str]]:
    """(section, code) of each code that a row of the page is about."""
    section = ""
    for line in text("reference/codes.md").splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ")
        if line.startswith("| `"):
            cell = line[2:].partition(" |")[0]
            yield from ((section, code) for code in re.findall(r"`([A-Za-z_]+)`", cell))


def words() -> set[str]:
    """Every text of the packages, and every quoted word of their Scala sources."""
    found: set[str] = set()
    for package in PACKAGES:
        for path in (REPOSITORY / package).rglob("*.py"):
            tree = ast.parse(path.read_text("utf-8"))
            found |= set(texts([node for node in ast.walk(tree) if isinstance(node, ast.expr)]))
        for path in (REPOSITORY / package).rglob("*.scala"):
            found |= set(re.findall(r'"([a-z_]+)\b', path.read_text("utf-8")))
    return found


def test_every_code_has_a_row() -> None:
    there = {code for _, code in explained()}

    assert len(codes()) > 60
    assert codes() - there == set()
    assert {*OwnTopicCode, *DriftKind} - {DriftKind.UNKNOWN} - there == set()


def test_no_section_has_two_rows_for_a_code() -> None:
    repeated = [one for one, count in Counter(explained()).items() if count > 1]

    assert repeated == []


def test_every_row_is_about_a_code_that_is_there() -> None:
    assert {code for _, code in explained()} - words() == set()


def test_every_check_is_explained() -> None:
    page = text("reference/codes.md")

    checks = (CLUSTER_REACHABLE, TOPIC_EXISTS, SCHEMA_REGISTERED, TARGET_FREE)
    for check in (*checks, STATEMENT_SOUND, DESTINATION_FREE, CONNECTOR_SOUND):
        assert f"| `{check}` |" in page


def test_every_crash_point_is_explained_and_none_is_gone() -> None:
    told = {
        found for node in calls() if called(node) == "crash_point" for found in texts(node.args)
    }
    # those of the order that links and statements share begin with what it is
    points = {
        f"{kind}{found}" if found.startswith("-") else found
        for found in told
        for kind in (Copying.name, Streaming.name)
    }
    explained = set(
        re.findall(r"^\| `([a-z-]+)` \|", text("operating/crash-points.md"), re.MULTILINE)
    )

    assert points == explained


@pytest.fixture(scope="module")
def vector() -> dict[str, object]:
    page = text("reference/wire-format.md")
    return dict(json.loads(re.findall(r"```json\n(.*?)```", page, re.DOTALL)[0]))


def test_the_worked_example_is_what_this_version_writes(
    vector: dict[str, object], tmp_path: Path
) -> None:
    key_file = tmp_path / "example.key"
    key_file.write_text(str(vector["private_key"]))
    key = SigningKey.load(key_file)
    event = EVENTS[str(vector["type"])].model_validate(vector["event"])

    wire = encode(event, int(str(vector["schema_id"])), key, str(vector["root_key"]))

    assert isinstance(event.meta.time, datetime)
    assert key.public == vector["mesh_key"]
    assert wire.key.decode() == vector["key"]
    assert wire.value.hex() == vector["value_hex"]
    assert dict(wire.headers)["ce_type"].decode() == vector["ce_type"]
    assert dict(wire.headers)["mesh_signature"].hex() == vector["mesh_signature_hex"]


def test_the_example_is_signed_over_the_bytes_that_the_page_lists(
    vector: dict[str, object],
) -> None:
    key, value = str(vector["key"]).encode(), bytes.fromhex(str(vector["value_hex"]))
    context, root = b"streaming-data-mesh record v1\0", decode_public(str(vector["root_key"]))
    signed = context + root + len(key).to_bytes(4, "big") + key + value

    public = Ed25519PublicKey.from_public_bytes(decode_public(str(vector["mesh_key"])))
    public.verify(bytes.fromhex(str(vector["mesh_signature_hex"])), signed)


def test_the_proof_of_the_examples_key_is_what_this_version_makes(
    vector: dict[str, object], tmp_path: Path
) -> None:
    key_file = tmp_path / "example.key"
    key_file.write_text(str(vector["private_key"]))
    proof = SigningKey.load(key_file).prove(str(vector["root_key"]), "west")

    assert f"`{proof}`" in text("reference/wire-format.md")


def test_the_proof_is_signed_over_the_bytes_that_the_page_lists(
    vector: dict[str, object],
) -> None:
    root, raw = (decode_public(str(vector[name])) for name in ("root_key", "mesh_key"))
    owner = b"west"
    signed = b"streaming-data-mesh key v1\0" + root + len(owner).to_bytes(4, "big") + owner + raw
    found = re.findall(r"`([A-Za-z0-9_-]{86})`", text("reference/wire-format.md"))

    Ed25519PublicKey.from_public_bytes(raw).verify(urlsafe_b64decode(found[0] + "=="), signed)


def test_the_checkpoint_is_what_the_examples_key_signs_over_its_leaf(
    vector: dict[str, object], tmp_path: Path
) -> None:
    page, key_file = text("reference/wire-format.md"), tmp_path / "example.key"
    key_file.write_text(str(vector["private_key"]))
    key = SigningKey.load(key_file)
    event = EVENTS[str(vector["type"])].model_validate(vector["event"])
    wire = encode(event, int(str(vector["schema_id"])), key, str(vector["root_key"]))
    leaf = leaf_hash(Record(41, 1795219200000, wire.key, wire.value, dict(wire.headers)))
    checkpoint = Checkpoint("local/mesh.governance", 1, leaf, 41).sign(key)

    assert f"`{leaf.hex()}`" in page
    assert f"```text\n{checkpoint.note}```" in page


def test_the_limits_are_those_of_the_code() -> None:
    page = text("reference/wire-format.md")

    assert (MAX_RECORD_BYTES, MAX_LOG_BYTES) == (512 * 1024, 1024 * 1024)
    assert MAX_INTENT_BYTES == 128 * 1024
    assert (WINDOW_MS, AHEAD_MS) == (3_600_000, 300_000)
    for limit in (
        "128 KiB",
        "512 KiB",
        "1 MiB",
        f"{LONGEST_ID} char",
        f"{LONGEST_TEXT} char",
        "1 hour",
    ):
        assert limit in page
