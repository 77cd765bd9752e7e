"""A mesh of its own, without Spark and Connect: its log and checkpoints are done violence."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from local_platform import LocalPlatform, PlatformSettings
from mesh_events.integrity.checkpoint import SignedCheckpoint
from mesh_events.integrity.places import checkpoints, read_file, read_topic
from mesh_events.settings import notes_path
from snapshots.place import open_store
from snapshots.store import Store
from tests.conftest import new_settings, start
from tests.faults.worker import REPOSITORY, WorkerProcess
from tests.mesh_kit import Mesh, eventually

SERVICES = ("kafka-east", "kafka-west", "registry", "bootstrap")

SNAPSHOT_RECORDS = 8
"""So few, that each worker but the first begins at a snapshot."""


@dataclass
class Stage:
    """A mesh whose worker the test starts and stops."""

    kit: Mesh
    settings: PlatformSettings
    workers: list[WorkerProcess] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return notes_path(self.settings.home, self.kit.profile.mesh)

    def worker(self, crash_at: str | None = None) -> WorkerProcess:
        self.stop()
        self.workers.append(
            WorkerProcess(
                self.settings.home,
                self.settings.port_base + 80,
                crash_at,
                {"SDM_SNAPSHOT_RECORDS": str(SNAPSHOT_RECORDS), "SDM_CHECKPOINT_S": "1"},
            )
        )
        return self.workers[-1]

    def stop(self) -> None:
        for each in self.workers:
            each.stop()

    def in_file(self) -> list[SignedCheckpoint]:
        return checkpoints(read_file(self.file))

    def on_topic(self) -> list[SignedCheckpoint]:
        return checkpoints(read_topic(self.kit.login("mesh.operator")))

    def covered(self) -> None:
        """Wait until a checkpoint in both places covers the log's last record."""

        def done() -> bool:
            end = self.kit.image().offset
            places = (self.in_file(), self.on_topic())
            return all(one and one[-1].body.offset == end for one in places)

        eventually(done, "a checkpoint over the whole log in both places")

    def sdm(self, *words: str) -> tuple[int, dict[str, Any], str]:
        """(exit code, JSON answer, stderr) of a command in a process of its own."""
        environment = {name: value for name, value in os.environ.items() if "SDM_" not in name}
        done = subprocess.run(
            [sys.executable, "-m", "self_service.cli", *words],
            cwd=REPOSITORY,
            env=environment | {"SDM_HOME": str(self.settings.home)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, json.loads(done.stdout or "{}"), done.stderr

    def snapshots(self) -> Store:
        return open_store(self.settings.home, self.kit.profile.mesh, self.kit.profile.root_key)

    def delete_records(self, topic: str, before: int) -> None:
        """What a cluster's administrator can do to the beginning of a topic."""
        admin = self.kit.admin()
        deleted = admin.delete_records([TopicPartition(topic, 0, before)])
        for future in deleted.values():
            future.result(20)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    settings = new_settings()
    platform = LocalPlatform(settings, SERVICES)
    kit = Mesh(start(platform), settings.home)
    found = Stage(kit, settings)
    try:
        yield found
    finally:
        found.stop()
        kit.close()
        platform.down()
        shutil.rmtree(settings.home)
