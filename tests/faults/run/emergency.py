"""A governor that dies while a domain is cut off, and one whose snapshots are garbage."""

import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from mesh_events.intents import DomainQuarantined, DomainReleased, ProductUpdated
from tests.faults.run.drift import admin_of
from tests.faults.run.fault import Fault
from tests.faults.run.judge import all_is_right
from tests.faults.run.stage import WAIT_S, Stage, eventually
from tests.faults.run.takeover import awake, die, sleeping
from tests.mesh_kit import fresh

ENOUGH = 3
"""So many snapshots fill more than the first page of the file."""
EVERY = 512
"""Records of one snapshot; each intent makes two."""
HEADER = 4096
"""What is left of the file: SQLite still takes it for its own."""


def cut_off(stage: Stage) -> float:
    """A governor dies when a domain's rights are gone, and nobody knows; until the log says so."""
    suspect = stage.kit.register_domain("suspect")
    reader = suspect.application("reader")
    request = suspect.request(stage.copied.product, reader.name)
    stage.owner.grant(stage.copied.product, request)
    operator, about = stage.kit.operator, {"domain": suspect.name, "reason": "fault"}
    with sleeping(stage) as before:
        end = stage.transcript.read().records[-1]["offset"]
        operator.emit(DomainQuarantined(meta=operator.meta(), **about))
        die(stage.worker("after-effect"))
        began = time.monotonic()
        assert not removed(stage, end), "it died when all was told: nothing was shown"
    stage.soon(lambda: removed(stage, end), "the log says that rights are gone")
    recovery = time.monotonic() - began
    stage.soon(lambda: not bindings(stage, suspect.name), f"{suspect.name} has no right")
    awake(stage, before)
    refused = reader.read(stage.copied.topic)
    assert isinstance(refused, str), f"{reader.name} still reads"
    stage.kit.accepted(operator.emit(DomainReleased(meta=operator.meta(), **about)))
    right = (reader.name, stage.copied.topic)
    stage.soon(lambda: right in stage.plain().readers(), "the reader's right is back")
    return recovery


def removed(stage: Stage, after: int) -> bool:
    """Whether the log says behind an offset that rights are gone."""
    records = stage.transcript.read().records
    return any(one["offset"] > after and one["type"] == "AclRemoved" for one in records)


def bindings(stage: Stage, domain: str) -> list[str]:
    """Who of a domain has any right on the cluster of the log."""
    everything = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    admin = admin_of(stage, "east")
    found = [
        one.principal.removeprefix("User:") for one in admin.describe_acls(everything).result(15)
    ]
    return [one for one in found if one.partition(".")[0] == domain]


def garble(stage: Stage) -> float:
    """The file from which the next worker would begin is garbage behind its header."""
    path = filled(stage)
    log = stage.home / "logs" / "governor.log"
    said = log.stat().st_size
    with path.open("r+b") as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(HEADER)
        file.write(os.urandom(length - HEADER))
    began = time.monotonic()
    before = stage.kill("governor")
    recovery = stage.pulse(began)
    stage.back(before)
    bad = Path(f"{path}.bad")
    eventually(bad.exists, "the garbage is put aside", WAIT_S)
    eventually(lambda: full(path), "snapshots are made again", WAIT_S)
    assert b"snapshots_put_aside" in log.read_bytes()[said:], "nobody was told"
    bad.unlink()
    return recovery


def filled(stage: Stage) -> Path:
    """The file, once it holds some snapshots, nothing of it lies beside it, and all is decided."""
    for _ in range(ENOUGH * EVERY // 2):
        stage.owner.say(ProductUpdated, product=stage.pulse_product, tags=[fresh("fill")])
    stage.pulse(time.monotonic())
    folder = stage.home / "snapshots"
    eventually(lambda: any(map(full, folder.glob("*.db"))), "snapshots are made", WAIT_S)
    path = next(filter(full, folder.glob("*.db")))
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def full(path: Path) -> bool:
    """Whether a file holds some snapshots."""
    return count(path) >= ENOUGH


def count(path: Path) -> int:
    """How many snapshots a file holds; none where it cannot be read."""
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file,
    ):
        return int(file.execute("SELECT count(*) FROM snapshots").fetchone()[0])
    return 0


FAULTS: tuple[Fault[Stage], ...] = (
    Fault(
        "quarantine-interrupted",
        "a domain is quarantined, the governor dies with its rights gone; until that is told",
        cut_off,
        all_is_right,
        bound_s=300,
    ),
    Fault(
        "snapshots-garbled",
        "the snapshots are overwritten with garbage, kill -9 of the governor",
        garble,
        all_is_right,
        bound_s=300,
    ),
)
