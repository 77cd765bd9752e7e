"""The Kafka Connect in memory, by the contract that a real one is held to."""

from collections.abc import Callable

import pytest

from tests.connectors.connect_contract import ConnectContract
from tests.connectors.memory import MemoryConnect


class TestMemoryConnect(ConnectContract):
    @pytest.fixture(autouse=True)
    def _world(self) -> None:
        self.memory = self.api = MemoryConnect()
        self.name, self.config = "one", {"connector.class": "any"}

    def fail(self) -> None:
        self.memory.fail(self.name, "DataException: no")

    def wait(self, condition: Callable[[], bool]) -> None:
        assert condition()
