"""Somebody with the broker's disk or its admin's login changes the log: the audit names it."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from local_platform import LocalPlatform
from tests.faults.run.fault import Fault, SkippedError
from tests.faults.run.judge import log_is_right
from tests.faults.run.own_mesh import OwnMesh, own_mesh
from tests.faults.run.segment import Batch, Partition, with_byte_flipped, with_earlier_time
from tests.faults.worker import REPOSITORY

LOG = "mesh.governance"
CHECKPOINTS = "mesh.checkpoints"
FINDING = 8
"""Exit code of `sdm` where an audit found something."""
BOUND_S = 480
HOUR_MS = 3_600_000
Edit = Callable[[list[Batch], int], list[Batch]]


def _replaced(change: Callable[[Batch], Batch]) -> Edit:
    return lambda batches, at: [*batches[:at], change(batches[at]), *batches[at + 1 :]]


EDITS: dict[str, tuple[str, Edit]] = {
    "a byte flipped": ("record_edited", _replaced(with_byte_flipped)),
    "a time changed": ("record_edited", _replaced(lambda one: with_earlier_time(one, HOUR_MS))),
    "a record cut out": ("record_deleted", lambda batches, at: batches[:at] + batches[at + 1 :]),
    "the tail cut": ("tail_cut", lambda batches, at: batches[:at]),
}
"""What is done to the batch in the middle -> (code of the audit, how)."""


@dataclass(frozen=True)
class Audit:
    """What `sdm audit verify` answered."""

    code: int
    told: dict[str, Any]
    text: str

    def names(self, code: str, offset: int) -> bool:
        """Whether its first finding is of this kind and place."""
        findings = self.told.get("findings") or [{}]
        first = findings[0]
        here = first.get("offset", -1) <= offset <= (first.get("last") or first.get("offset", -1))
        return self.code == FINDING and first.get("code") == code and here


def tamper(_: None) -> None:
    """Every kind of edit on the log of one stopped mesh, each undone before the next."""
    with own_mesh(BOUND_S) as ground, tempfile.TemporaryDirectory(prefix="sdm-faults-") as kept:
        wrong = log_is_right(ground)
        assert not wrong, "; ".join(wrong)
        for each in ground.busy:
            each.hold(30)
        wait_signed(ground)
        ground.platform.down()
        broker = LocalPlatform(ground.settings, ("kafka-east",))
        partition = Partition(ground.home / "data" / "kafka-east" / f"{LOG}-0")
        aside = Path(kept) / "log"
        partition.saved(aside)
        found = [audited(ground, broker, partition, aside, kind) for kind in EDITS]
        partition.restored(aside)
        found.append(records_deleted(ground, broker))
        broker.down()
        missed = [text for text in found if text]
        assert not missed, "; ".join(missed)


def audited(
    ground: OwnMesh, broker: LocalPlatform, partition: Partition, aside: Path, kind: str
) -> str:
    """What the audit missed of one edit, "" where it named it."""
    code, edit = EDITS[kind]
    partition.restored(aside)
    batches = partition.batches()
    middle = next(
        at for at in range(len(batches) // 2, len(batches)) if b"turn " in batches[at].raw
    )
    partition.write(edit(batches, middle))
    broker.up()
    answer = verify(ground)
    broker.down()
    offset = batches[middle].first
    if answer.names(code, offset):
        return ""
    return f"{kind} at {offset}: exit code {answer.code}, not {code}: {answer.text[-300:]}"


def records_deleted(ground: OwnMesh, broker: LocalPlatform) -> str:
    """The same with the admin's own call, on the living broker."""
    broker.up()
    admin = AdminClient(ground.kit.admin_login().config())
    for answer in admin.delete_records([TopicPartition(LOG, 0, 5)]).values():
        answer.result(15)
    told = verify(ground)
    if told.names("log_start_truncated", 0):
        return ""
    return f"DeleteRecords: exit code {told.code}, not log_start_truncated: {told.text[-300:]}"


def wait_signed(ground: OwnMesh) -> None:
    """Wait until the untouched log is found whole, and its last record is in a checkpoint."""
    topics = AdminClient(ground.kit.admin_login().config()).list_topics(timeout=10).topics
    if CHECKPOINTS not in topics:
        raise SkippedError("this version signs no checkpoints: a changed log cannot be told")
    deadline = time.monotonic() + 60
    while True:
        answer = verify(ground)
        assert answer.code == 0, f"the untouched log does not hold: {answer.text[-400:]}"
        end = ground.transcript.read().records[-1]["offset"]
        if answer.told.get("checkpoint_offset") == end:
            return
        assert time.monotonic() < deadline, "the log's end is in no checkpoint"


def verify(ground: OwnMesh) -> Audit:
    """Ask the audit, as anybody does."""
    environment = {name: value for name, value in os.environ.items() if "SDM_" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "self_service.cli", "audit", "verify", "-o", "json"],
        cwd=REPOSITORY,
        env={**environment, "SDM_HOME": str(ground.home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    told = json.loads(done.stdout) if done.stdout.strip().startswith("{") else {}
    return Audit(done.returncode, told, done.stderr.strip())


FAULTS = (
    Fault(
        "log-tampered",
        "the log's segment edited, a record cut out, its tail cut, DeleteRecords",
        tamper,
        lambda _: [],
        BOUND_S,
    ),
)
