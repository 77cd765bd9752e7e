"""A proof holds as it was written, and in no other way."""

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from mesh_events import intents
from mesh_events.decisions import MeshRole
from mesh_events.integrity.checkpoint import SignedCheckpoint
from mesh_events.meta import Event, derived_id
from projections.identity import Key, Role
from projections.integrity.chain import chained
from self_service.cli.app import app
from self_service.cli.audit import prove
from self_service.cli.audit.prove import MOST_PROOF_BYTES
from self_service.cli.framework.exits import ExitCode, FindingError, NotFoundError, UsageError
from self_service.cli.proof import reading
from self_service.cli.proof.checking import check
from self_service.cli.proof.file import Proof, read, written
from self_service.cli.proof.search import Search
from tests import sample_history as story
from tests.memory_log import MemoryLog, key
from tests.signed_log import ORIGIN, busy_log, signed_over, trusting

RECORDS = busy_log()
SIGNED = signed_over(RECORDS, 6)
LAST = RECORDS[-1].offset
CONTROLLER = key("controller").public


def proven(reference: str) -> Proof:
    found, controller = Search(reference).run(RECORDS, trusting(SIGNED), chained(ORIGIN, SIGNED))
    assert controller.public == CONTROLLER
    return found


TEXT = written(proven(f"#{LAST}"))


@pytest.mark.parametrize("record", RECORDS[::3], ids=lambda one: str(one.offset))
def test_every_record_can_be_proven_and_is_read_without_the_log(record) -> None:
    found = check(read(written(proven(f"#{record.offset}"))), CONTROLLER)
    assert found.proof.subject.placed.record == record
    assert found.introducer in (key("root").public, None)
    assert isinstance(found.event, Event) or found.fault
    assert (found.event is None) is (record.value is None)


def test_an_event_is_found_by_its_id_or_the_beginning_of_it() -> None:
    event = check(read(TEXT), CONTROLLER).event
    assert event is not None
    assert proven(event.meta.id).subject.placed.record.offset == LAST
    assert proven("0").subject.placed.record.offset == RECORDS[0].offset == 0
    assert proven(event.meta.id[:30].upper()).subject.placed.record.offset == LAST


def test_a_repeated_id_means_the_record_of_the_mesh_or_the_first_one() -> None:
    log = MemoryLog()
    story.published(log)
    derived = derived_id("any", "create-link", log.image.offset + 2)
    offsets = []
    for identity in (derived, f"{derived}0", derived):
        event = log.make(intents.ApplicationRegistered, "north", application="north.spy")
        meta = event.meta.model_copy(update={"id": identity})
        offsets.append(log.append(event.model_copy(update={"meta": meta}), by="north"))
    log.govern()
    assert _offset_of(log, derived) == offsets[0]
    event = log.make(intents.LinkPaused, "mesh", product=story.PRODUCT, cluster="west", reason="-")
    meta = event.meta.model_copy(update={"id": derived})
    own = log.append(event.model_copy(update={"meta": meta}), by="governor")
    log.govern()
    assert _offset_of(log, derived) == own


def _offset_of(log: MemoryLog, reference: str) -> int:
    signed = signed_over(log.records, 1)
    found, _ = Search(reference).run(log.records, trusting(signed), chained(ORIGIN, signed))
    return found.subject.placed.record.offset


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        (f"#{LAST + 1}", NotFoundError),
        ("ffff", NotFoundError),
        ("01a0c45", UsageError),
        (" ", UsageError),
    ],
)
def test_what_is_not_there_or_not_one_is_said(reference: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        proven(reference)


def test_what_no_checkpoint_covers_cannot_be_proven_yet() -> None:
    with pytest.raises(NotFoundError, match="no checkpoint covers"):
        Search(f"#{LAST}").run(RECORDS, None, chained(ORIGIN, SIGNED[:-1]))


def test_a_log_that_was_altered_proves_nothing() -> None:
    altered = [*RECORDS[:-2], replace(RECORDS[-2], time=1), RECORDS[-1]]
    with pytest.raises(FindingError, match="audit verify"):
        Search(f"#{LAST}").run(altered, None, chained(ORIGIN, SIGNED))


@settings(max_examples=300)
@given(st.integers(0, len(TEXT.encode()) - 1), st.integers(0, 7))
def test_any_bit_of_a_proof_matters(place: int, bit: int) -> None:
    raw = bytearray(TEXT.encode())
    raw[place] ^= 1 << bit
    with pytest.raises((FindingError, UnicodeDecodeError)):
        check(read(raw.decode()), CONTROLLER)


def test_another_key_is_refused() -> None:
    with pytest.raises(FindingError, match="not signed by"):
        check(read(TEXT), key("governor").public)


def test_another_schema_than_the_logs_is_refused() -> None:
    """It would make the same bytes say something else."""
    document = json.loads(TEXT)
    document["introduction"] = {name: document[name] for name in ("record", "index", "path")}
    with pytest.raises(FindingError, match="introduces no schema"):
        check(read(json.dumps(document)), CONTROLLER)
    document["introduction"] = None
    assert check(read(json.dumps(document)), CONTROLLER).event is None


def command(file: Path, *more: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["audit", "check-proof", str(file), *more])
    return done.exit_code, done.output


def test_the_command_needs_nothing_but_file_and_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDM_HOME", str(tmp_path / "nowhere"))
    file = tmp_path / "proof.json"
    file.write_text(TEXT)
    code, output = command(file, "--key", CONTROLLER)
    assert code == 0
    assert re.search(rf"offset +{LAST}\n", output)
    assert command(file, "--key", key("root").public)[0] == 8
    assert command(file, "--key", "short")[0] == 2
    file.write_text(TEXT.replace(f'"offset": {LAST}', f'"offset": {LAST + 1}'))
    code, output = command(file, "--key", CONTROLLER)
    assert code == 8
    assert "is not covered by the checkpoint" in output
    file.write_text("{}")
    assert command(file, "--key", CONTROLLER)[0] == 8
    file.write_bytes(b"\xff")
    assert command(file, "--key", CONTROLLER)[0] == 8
    assert command(tmp_path / "none.json", "--key", CONTROLLER)[0] == 2


def test_a_proof_without_an_end_is_refused() -> None:
    code, output = command(Path("/dev/zero"), "--key", CONTROLLER)
    assert code == 2
    assert f"has more than {MOST_PROOF_BYTES} bytes" in " ".join(output.split())


def test_a_proof_is_written_into_no_folder_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Paper:
        def log(self) -> nullcontext[None]:
            return nullcontext()

        def fold(self, *_: Any) -> tuple[Proof, Key]:
            return proven(f"#{LAST}"), Key(CONTROLLER, Role.CONTROLLER, "mesh", 0)

    monkeypatch.setattr(prove, "Mesh", Paper)
    monkeypatch.setattr(prove, "_signed", lambda _: None)

    def wrote(file: Path) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["audit", "prove", str(LAST), "--out", str(file)])
        return done.exit_code, " ".join(done.output.split())

    folder = tmp_path / "nowhere"
    code, output = wrote(folder / "x")
    assert code == ExitCode.CONFIGURATION
    assert "cannot be written: No such file or directory" in output
    assert not folder.exists()
    assert wrote(tmp_path / "x")[0] == 0
    assert (tmp_path / "x").read_text("utf-8") == TEXT


def test_a_key_in_force_vouches_rather_than_a_revoked_one() -> None:
    log = MemoryLog()
    story.published(log)
    old = signed_over(log.records, 6)
    log.introduce_key(MeshRole.CONTROLLER, "next")
    log.revoke_key("controller")
    new = signed_over(log.records, len(log.records), by="next")
    trusted = trusting([*old, *new])

    def signer(signed: list[SignedCheckpoint]) -> Key:
        return Search("#3").run(log.records, trusted, chained(ORIGIN, signed))[1]

    assert signer([*old, *new]).public == key("next").public
    only = signer(old)
    assert only.public == CONTROLLER
    assert only.revoked is not None


def test_nothing_is_read_by_the_schema_of_a_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes by a schema of one's own keep a reader busy for ever."""
    decoded, real = list[int](), reading.decode

    def decode(record: Any, *more: Any, **how: Any) -> Any:
        decoded.append(record.offset)
        return real(record, *more, **how)

    monkeypatch.setattr(reading, "decode", decode)
    subject = read(TEXT).subject
    assert subject.schema is not None
    with pytest.raises(FindingError, match="is not signed by the root or a governor"):
        reading.read(subject, reading.Roles(key("east").public, {}))
    assert decoded == [subject.schema.record.offset]


def test_a_place_that_no_log_has_is_no_proof() -> None:
    with pytest.raises(FindingError, match="this is not a proof"):
        read(TEXT.replace(f'"offset": {LAST}', f'"offset": {2**70}'))
