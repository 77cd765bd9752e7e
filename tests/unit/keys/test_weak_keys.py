"""Public keys under which anybody can sign are refused wherever a key comes in."""

from dataclasses import replace
from typing import Any

import pytest
import typer.testing

from mesh_events import codec, intents, signing
from mesh_events.decisions import MeshFounded, MeshKeyIntroduced, MeshRole
from mesh_events.record import FaultCode, Record
from mesh_events.signing import encode_public, is_public_key
from projections.deciding.verdict import Rejected
from projections.fold import apply
from projections.image import EMPTY
from tests import sample_history as story
from tests.memory_log import MemoryLog, key, record_of, sign
from tests.unit.keys.weak_keys import UNREDUCED, WEAK, WEAK_TEXTS, forgery

ROOT = key("root").public


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.domains(found)
    return found


def signed_by_nobody(record: Record, raw: bytes, root: str = ROOT) -> Record | None:
    """The record under a weak key, with a signature that fits it, if there is a simple one."""
    public = encode_public(raw)
    text = signing.signed_bytes(root, record.key or b"", record.value or b"")
    signature = forgery(raw, text)
    headers = {**record.headers, "mesh_key": public.encode(), "mesh_signature": signature}
    return None if signature is None else replace(record, headers=headers)


def test_there_are_fourteen_encodings_and_anybody_signs_under_most_of_them() -> None:
    assert len(set(WEAK)) == 14
    texts = [f"text {number}".encode() for number in range(50)]
    forgeable = [raw for raw in WEAK if any(forgery(raw, text) for text in texts)]
    # the library refuses none of those that it can decode
    assert len(forgeable) >= 7


@pytest.mark.parametrize("raw", WEAK, ids=bytes.hex)
def test_a_key_of_small_order_is_no_public_key(raw: bytes) -> None:
    assert not is_public_key(encode_public(raw))
    with pytest.raises(signing.WeakKeyError):
        signing.decode_public(encode_public(raw))


def test_an_unreduced_spelling_is_no_public_key() -> None:
    assert len(UNREDUCED) == 38
    assert not any(is_public_key(encode_public(raw)) for raw in UNREDUCED)


def test_what_is_signed_under_a_weak_key_is_set_aside(log: MemoryLog) -> None:
    intent = log.say(intents.ApplicationRegistered, "east", application="east.app")
    found = [signed_by_nobody(log.records[intent], raw) for raw in WEAK]
    forged = [one for one in found if one is not None]
    assert forged
    for record in forged:
        entry = codec.decode(record, log.image.schemas, ROOT)
        assert entry.fault is not None
        assert entry.fault.code is FaultCode.WEAK_KEY
        assert not codec.has_valid_signature(record, ROOT)


@pytest.mark.parametrize("public", WEAK_TEXTS)
def test_no_domain_registers_a_weak_key(log: MemoryLog, public: str) -> None:
    fields: dict[str, Any] = {"domain": "south", "owner": "team", "cluster": "east"}
    domain = log.operator(intents.DomainRegistered, **fields, public_key=public, proof="")
    second = log.say(intents.KeyRegistered, "east", domain="east", public_key=public, proof="")
    for offset in (domain, second):
        verdict = log.verdict(offset)
        assert isinstance(verdict, Rejected)
        assert verdict.code == "weak_key"


@pytest.mark.parametrize("public", WEAK_TEXTS)
def test_the_mesh_itself_gets_no_weak_key(log: MemoryLog, public: str) -> None:
    before = log.image.identity
    event = log.make(MeshKeyIntroduced, "mesh", role=MeshRole.GOVERNOR, public_key=public, proof="")
    offset = log.append(event, by="root")
    assert log.image.identity == before
    fault = log.image.intents.unusable.fault_at(offset)
    assert fault is not None
    assert fault.code is FaultCode.WEAK_KEY


@pytest.mark.parametrize("role", ["operator_key", "governor_key", "controller_key"])
def test_no_mesh_is_founded_with_a_weak_key(role: str) -> None:
    log = MemoryLog()
    founded = log.event_at(log.records[-1].offset)
    assert isinstance(founded, MeshFounded)
    log.records.pop()
    weak = founded.model_copy(update={role: WEAK_TEXTS[0]})
    image = EMPTY
    for record in [*log.records, record_of(sign(weak, key("root")), len(log.records), log.now)]:
        image = apply(image, codec.decode(record, image.schemas, image.identity.root))
    assert not image.identity.mesh
    assert list(image.identity.keys) == [key("root").public]


def test_no_log_has_a_weak_root() -> None:
    """Not even where the library takes its signature in a mesh of its own."""
    record = MemoryLog().records[0]
    text = b"streaming-data-mesh record v1\0%b\0\0\0\x0d%b%b"
    forged = 0
    for raw in WEAK:
        key_bytes, value = record.key or b"", record.value or b""
        assert len(key_bytes) == 13
        signature = forgery(raw, text % (raw, key_bytes, value))
        named = {"mesh_key": encode_public(raw).encode(), "mesh_signature": signature}
        found = replace(record, headers={**record.headers, **named})
        forged += signature is not None
        assert apply(EMPTY, codec.decode(found, {}, None)).identity.root is None
    assert forged


def test_the_command_line_takes_no_weak_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from self_service.cli.domain import key as noun

    def no_mesh() -> None:
        raise AssertionError("the mesh was asked")

    monkeypatch.setattr(noun, "Mesh", no_mesh)
    for public in ("short", *WEAK_TEXTS):
        done = typer.testing.CliRunner().invoke(noun.app, ["register", "--public-key", public])
        assert done.exception is not None
        assert "public key" in str(done.exception)
