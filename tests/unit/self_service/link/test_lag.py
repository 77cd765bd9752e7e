"""How far copies are behind, and what is said of one in which nothing was found."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from mesh_events.errors import ConfigurationError, MeshError
from self_service.cli.framework.exits import NotFoundError
from self_service.cli.link import lag
from self_service.cli.link.lag import still_fills, with_open
from self_service.cli.mesh import brokers
from self_service.cli.mesh.brokers import OpenTransactions
from tests import sample_history as story
from tests.memory_log import MemoryLog

WEST = "west.invalid:9092"


def test_only_of_a_copy_something_is_said() -> None:
    log = MemoryLog()
    story.published(log)
    mesh: Any = SimpleNamespace(image=lambda: log.image)
    assert still_fills(mesh, "east.users", WEST) is None
    story.granted(log)
    assert still_fills(mesh, "east.users", WEST) is None
    story.settle(log)
    said = still_fills(mesh, "east.users", WEST) or ""
    assert "its link east.users@west is ACTIVE" in said
    assert "--follow" in said
    assert still_fills(mesh, "west.other", WEST) is None
    assert still_fills(mesh, "east.users", "east.invalid:9092") is None


def test_without_a_mesh_nothing_is_said() -> None:
    def image() -> Any:
        raise ConfigurationError("no mesh here")

    mesh: Any = SimpleNamespace(image=image)
    assert still_fills(mesh, "east.users", WEST) is None


def test_what_stands_behind_an_open_transaction_counts_as_lag() -> None:
    late, come = {0: 0, 1: 3, 2: 5}, {0: 10, 1: 20, 2: 30}
    assert with_open(late, come, {}) == late
    # the transaction of 0 begins where the copy stands, that of 1 behind what it still has to copy
    assert with_open(late, come, {0: (10, 14), 1: (23, 40)}) == {0: 4, 1: 20, 2: 5}
    # what has ended since is counted once
    assert with_open({0: 9}, {0: 10}, {0: (10, 14)}) == {0: 9}


class Cluster:
    """Answers for topics with open transactions, one after the other."""

    def __init__(self, **answers: Sequence[OpenTransactions | MeshError]) -> None:
        self._answers = {topic: [*given] for topic, given in answers.items()}

    def open_transactions(self, _: object, topic: str) -> OpenTransactions:
        given = self._answers[topic]
        found = given.pop(0) if len(given) > 1 else given[0]
        if isinstance(found, MeshError):
            raise found
        return found


def test_only_a_transaction_that_stays_open_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(
        users=[{0: (5, 9), 2: (1, 2)}, {0: (5, 12)}],
        orders=[{0: (5, 9)}, {0: (9, 12)}],
        clicks=[{}],
        gone=[NotFoundError("there is no topic gone")],
    )
    monkeypatch.setattr(lag, "_LASTING_S", 0)
    monkeypatch.setattr(brokers, "open_transactions", cluster.open_transactions)
    mesh: Any = SimpleNamespace(administration=lambda *_: None)
    image: Any = None
    found = lag.stands_still(mesh, image, "east", ["users", "orders", "clicks", "gone", "users"])
    assert found == {"users": {0: 5}, "gone": "not checked: there is no topic gone"}
    told = capsys.readouterr().err
    assert "users: a transaction is open in partition 0 since offset 5: records from" in told
    assert "`sdm kafka transactions --cluster east list`" in told
    assert "orders" not in told
