"""MirrorMaker 2 by itself: its source connector on a Connect worker that the benchmark starts."""

import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import requests

from benchmarks.members import wait
from local_platform import PlatformSettings
from local_platform.jars.java import java, large_jvm, log4j_options, properties
from local_platform.ports import HOST
from local_platform.services.spark import HEAP_MB
from local_platform.site import Site
from mesh_events.kafka.connection import Connection
from spark_streams.spark import BATCH_BYTES

SOURCE, COPY = "east", "west"
_CONNECT = "org.apache.kafka.connect"
_BYTES = f"{_CONNECT}.converters.ByteArrayConverter"
_NAME = "copy"
_EXACTLY_ONCE = "exactly.once.source.support"
TUNED: Mapping[str, object] = {
    # its documentation advises two tasks and more
    "tasks.max": 2,
    "producer.override.batch.size": BATCH_BYTES,
    "producer.override.linger.ms": 0,
    "source.consumer.max.poll.records": 5000,
    "source.consumer.fetch.max.bytes": 16 * 1024 * 1024,
    "source.consumer.isolation.level": "read_committed",
    # nothing but records is copied, as by a link
    "emit.offset-syncs.enabled": False,
    "sync.topic.configs.enabled": False,
    "sync.topic.acls.enabled": False,
    "refresh.topics.enabled": False,
    "refresh.groups.enabled": False,
}


class MirrorMaker:
    """One worker at the copy's cluster with one connector; copies keep to `east.<topic>`.

    Args:
        settings: of the platform whose jars it runs.
        folder: for its settings and its log.
        port: of its REST API.
        exactly_once: whether records and positions are written in one transaction.
    """

    def __init__(
        self,
        settings: PlatformSettings,
        folder: Path,
        port: int,
        source: Connection,
        copy: Connection,
        *,
        exactly_once: bool,
    ) -> None:
        self._url = f"http://{HOST}:{port}"
        self._logins = {SOURCE: source, COPY: copy}
        self.settings: Mapping[str, object] = {
            **TUNED,
            "-Xmx": f"{HEAP_MB}m",
            _EXACTLY_ONCE: "enabled" if exactly_once else "disabled",
        }
        folder.mkdir()
        config = folder / "worker.properties"
        config.write_text(properties(self._worker(folder.name)))
        config.chmod(0o600)
        path = Site.of(settings).jars.class_path("kafka")
        options = [*large_jvm(settings), *log4j_options(folder)]
        argv = java(f"{_CONNECT}.cli.ConnectDistributed", HEAP_MB, path, options)
        self._log = folder / "worker.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen([*argv, str(config)], stdout=log, stderr=log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)

    @property
    def pid(self) -> int:
        """The worker's process."""
        return self._process.pid

    def copy(self, topic: str) -> None:
        """Begin to copy a topic; returns once the connector runs."""
        prefixed = {
            f"{side}.cluster.{name}": value
            for side, cluster in (("source", SOURCE), ("target", COPY))
            for name, value in self._logins[cluster].java().items()
        }
        config = {
            "connector.class": f"{_CONNECT}.mirror.MirrorSourceConnector",
            "key.converter": _BYTES,
            "value.converter": _BYTES,
            "header.converter": _BYTES,
            "source.cluster.alias": SOURCE,
            "target.cluster.alias": COPY,
            "topics": re.escape(topic),
            "replication.factor": "1",
            **prefixed,
            **{name: str(value).lower() for name, value in TUNED.items()},
        }
        wait(lambda: self._answers("GET", "connectors"), 120)
        wait(lambda: self._answers("PUT", f"connectors/{_NAME}/config", config), 60)
        self._wait_for("RUNNING")

    def pause(self) -> None:
        """Pause the connector; returns once it is paused."""
        self._ask("PUT", f"connectors/{_NAME}/pause")
        self._wait_for("PAUSED")

    def resume(self) -> None:
        """Resume the connector; returns at once."""
        self._ask("PUT", f"connectors/{_NAME}/resume")

    def _wait_for(self, state: str) -> None:
        wait(lambda: self._states() == {state}, 120)

    def _states(self) -> set[str]:
        found = self._ask("GET", f"connectors/{_NAME}/status").json()
        tasks = found.get("tasks") or [{"state": "none"}]
        return {found["connector"]["state"], *(one["state"] for one in tasks)}

    def _answers(self, method: str, path: str, config: Any = None) -> bool:
        if self._process.poll() is not None:
            raise SystemExit(f"MirrorMaker ended: {self._log.read_text('utf-8')[-2000:]}")
        try:
            return self._ask(method, path, config).ok
        except requests.RequestException:
            time.sleep(0.2)
            return False

    def _ask(self, method: str, path: str, config: Any = None) -> requests.Response:
        return requests.request(method, f"{self._url}/{path}", json=config, timeout=30)

    def _worker(self, name: str) -> dict[str, str]:
        login = self._logins[COPY].java()
        topics = {
            f"{kind}.storage.{key}": value
            for kind in ("config", "offset", "status")
            for key, value in (("topic", f"{name}-{kind}"), ("replication.factor", "1"))
        }
        return {
            **{
                f"{client}{key}": value
                for client in ("", "producer.", "consumer.", "admin.")
                for key, value in login.items()
            },
            **topics,
            "group.id": name,
            "listeners": self._url,
            "key.converter": _BYTES,
            "value.converter": _BYTES,
            "plugin.discovery": "service_load",
            "scheduled.rebalance.max.delay.ms": "0",
            _EXACTLY_ONCE: str(self.settings[_EXACTLY_ONCE]),
        }
