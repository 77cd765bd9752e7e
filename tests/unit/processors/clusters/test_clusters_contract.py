"""The cluster in memory keeps the promises that real Kafka keeps."""

from collections.abc import Callable

import pytest

from mesh_events.errors import RefusedError
from mesh_events.kafka.connection import Connection
from processors.clusters.rights import Acl
from tests.links.cluster_contract import ClusterContract
from tests.links.memory import MemoryCluster, MemoryLogs


class TestMemoryCluster(ClusterContract):
    @pytest.fixture(autouse=True)
    def _world(self) -> None:
        self.cluster = self.admin = MemoryCluster("east")
        self.topic = "east.topic"

    def may_log_in(self, connection: Connection) -> bool:
        try:
            MemoryLogs({"east": self.cluster}).probe(connection, self.topic)
        except RefusedError:
            return False
        return True

    def logins(self) -> set[str]:
        return set(self.cluster.logins)

    def make(self, acl: Acl) -> None:
        self.cluster.make(acl)

    def wait(self, condition: Callable[[], bool]) -> None:
        assert condition()
