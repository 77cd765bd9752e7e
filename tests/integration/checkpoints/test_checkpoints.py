"""Checkpoints on real servers: signed, kept in two places, and holding the log to its word."""

import json
import signal
from pathlib import Path

import pytest

from mesh_events import topics
from mesh_events.intents import ApplicationRegistered
from mesh_events.read import LogReader
from projections.replay import fold
from snapshots.history import image_at
from tests.integration.checkpoints.conftest import Stage
from tests.mesh_kit import Domain, eventually, fresh

pytestmark = [pytest.mark.platform, pytest.mark.slow, pytest.mark.long]


def test_checkpoints_hold_the_log_to_its_word(stage: Stage, tmp_path: Path) -> None:
    """One story, for each part begins with what the one before has left.

    A worker signs and dies between the two places; a record is proven without Kafka; then an
    administrator deletes checkpoints, edits the file, and deletes the beginning of the log. Every
    worker but the first begins at a snapshot.
    """
    worker = stage.worker()
    worker.wait_ready()
    shop = stage.kit.register_domain()
    stage.covered()
    _holds(stage)

    _dies_between_the_places(stage, shop, "checkpoint-after-file", ahead=1)
    _dies_between_the_places(stage, shop, "checkpoint-after-topic", ahead=0)
    _is_proven_without_kafka(stage, shop, tmp_path)
    _checkpoints_deleted_from_the_topic(stage)
    _a_note_edited_in_the_file(stage)
    _begins_at_a_snapshot(stage, shop)
    _beginning_of_the_log_deleted(stage)


def _say(stage: Stage, shop: Domain) -> str:
    receipt = shop.say(ApplicationRegistered, application=f"{shop.name}.{fresh('app')}")
    return receipt.id


def _holds(stage: Stage) -> None:
    code, told, said = stage.sdm("audit", "verify", "--strict", "-o", "json")
    assert (code, told["findings"]) == (0, []), said
    assert told["valid"]
    assert told["checkpoint_size"] == told["tree_size"] == told["records"]
    assert told["checkpoints"] == len(stage.in_file())
    assert told["checkpoint_time"]
    code, _, said = stage.sdm("audit", "verify", "--to", "1000000", "-o", "json")
    assert (code, "is after the log's last record" in said) == (0, True), said


def _dies_between_the_places(stage: Stage, shop: Domain, point: str, *, ahead: int) -> None:
    worker = stage.worker(crash_at=point)
    # its own start is news enough to be signed over
    assert worker.wait_end() == -signal.SIGKILL
    assert len(stage.in_file()) == len(stage.on_topic()) + ahead
    if ahead:
        code, told, _ = stage.sdm("audit", "verify", "-o", "json")
        assert (code, told["findings"][0]["code"]) == (8, "checkpoint_missing")
    # a crash in the middle of the file's last note
    with stage.file.open("ab") as file:
        file.write(b"local/mesh.governance\n12")
    stage.worker().wait_ready()
    _say(stage, shop)
    stage.covered()
    assert stage.in_file() == stage.on_topic()
    assert stage.file.stat().st_mode & 0o777 == 0o644
    _holds(stage)


def _is_proven_without_kafka(stage: Stage, shop: Domain, folder: Path) -> None:
    accepted = shop.say(ApplicationRegistered, application=f"{shop.name}.{fresh('app')}")
    refused = shop.say(ApplicationRegistered, application=f"{shop.name}x.app")
    for receipt, outcome in ((accepted, "ACCEPTED"), (refused, "REJECTED not_your_domain")):
        stage.kit.decided(receipt.offset)
        stage.covered()
        file = folder / f"{outcome}.json"
        code, told, said = stage.sdm("audit", "prove", receipt.id, "--out", str(file), "-o", "json")
        assert (code, told["outcome"]) == (0, outcome), said
        key = stage.kit.key("controller").public
        assert told["controller_key"] == key
        check = ("audit", "check-proof", str(file), "--key", key, "-o", "json")
        code, told, said = stage.sdm(*check)
        assert (code, told["event"]["meta"]["id"]) == (0, receipt.id), said
        assert told["outcome"] == outcome
        assert told["decided_by"] == stage.kit.profile.governor_key
        assert told["signer"] == shop.key.public
        assert told["schema_introduced_by"] == told["root_key"] == stage.kit.profile.root_key
        document = json.loads(file.read_text())
        document["decision"]["record"]["time"] += 1
        file.write_text(json.dumps(document))
        assert stage.sdm(*check)[0] == 8


def _checkpoints_deleted_from_the_topic(stage: Stage) -> None:
    stage.stop()
    before = stage.in_file()
    stage.delete_records(topics.CHECKPOINTS, 2)
    code, told, _ = stage.sdm("audit", "verify", "-o", "json")
    assert (code, told["findings"][0]["code"]) == (8, "checkpoint_missing")
    stage.worker().wait_ready()
    stage.covered()
    assert stage.in_file()[: len(before)] == before
    _holds(stage)
    assert {one.note.digest for one in stage.on_topic()} >= {one.note.digest for one in before}


def _a_note_edited_in_the_file(stage: Stage) -> None:
    stage.stop()
    text = stage.file.read_text()
    stage.file.write_text(text.replace("offset ", "offset 1", 1))
    code, told, _ = stage.sdm("audit", "verify", "-o", "json")
    assert code == 8
    assert {one["code"] for one in told["findings"]} & {"checkpoint_edited", "checkpoint_missing"}
    stage.file.write_text(text)


def _begins_at_a_snapshot(stage: Stage, shop: Domain) -> None:
    worker = stage.worker()
    worker.wait_ready()
    _say(stage, shop)
    stage.covered()
    lines = worker.last_lines(200)
    assert "snapshot_loaded" in lines
    assert "history_read" in lines
    assert worker.describe()["finding"] is None  # type: ignore[index]  # it is ready
    _holds(stage)
    with stage.snapshots() as store, LogReader(stage.kit.login("mesh.operator")) as reader:
        images = {image.offset: image for image in fold(reader.to_end())}
        assert store.count() > 3
        for offset, image in images.items():
            assert image_at(store, reader.since, at_offset=offset) == image


def _beginning_of_the_log_deleted(stage: Stage) -> None:
    stage.stop()
    stage.delete_records(topics.GOVERNANCE, 5)
    code, told, said = stage.sdm("audit", "verify", "-o", "json")
    assert (code, told["findings"][0]["code"]) == (8, "log_start_truncated")
    assert (told["findings"][0]["offset"], told["findings"][0]["last"]) == (0, 4)
    assert "offsets 0 to 4" in said
    # a worker's state does not rest on what is gone; it works on, tells it, and signs nothing more
    signed, worker = stage.in_file(), stage.worker()
    worker.wait_ready()

    def told_so() -> bool:
        finding = (worker.describe() or {}).get("finding")
        return bool(finding) and finding["code"] == "log_start_truncated"

    eventually(told_so, "the worker tells that the beginning of the log is gone")
    assert stage.in_file() == signed
