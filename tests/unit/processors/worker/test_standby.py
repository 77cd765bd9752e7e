"""A worker that stands by while another one has the log, and says so."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from faust.types import TP

from mesh_events.kafka.connection import Connection
from mesh_events.topics import GOVERNANCE
from processors.worker import standby as module
from processors.worker.app import build
from processors.worker.standby import Standby
from processors.worker.worker import Worker
from tests.memory_log import MemoryLog


class Follower:
    """A log of three offsets, one of which comes with each look."""

    def __init__(self) -> None:
        self.position = 0
        self.partition = self

    def bounds(self) -> tuple[int, int]:
        return 0, 3

    def follow(self, timeout: float) -> Iterator[Any]:
        del timeout
        self.position += 1
        return iter(())


class Watched:
    """A governor that notes, at each look, whether its standby was near the end before."""

    def __init__(self, looks: int) -> None:
        self.image = MemoryLog().image
        self.near: list[bool] = []
        self._looks = looks
        self.standby: Standby

    def begin(self) -> None:
        """There is nothing to begin with."""

    def fold(self, records: Iterator[Any]) -> None:
        self.near.append(self.standby.is_near)
        list(records)
        if len(self.near) == self._looks:
            self.standby.over()


def test_a_standby_is_near_once_it_has_folded_what_was_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @contextmanager
    def reader(*_: object) -> Iterator[Follower]:
        yield Follower()

    monkeypatch.setattr(module, "LogReader", reader)

    async def story() -> Watched:
        governor = Watched(looks=5)
        governor.standby = Standby(cast("Any", None), cast("Any", governor), asyncio.Lock())
        await governor.standby._follow()
        return governor

    governor = asyncio.run(story())
    assert governor.near == [False, False, False, True, True]
    assert not governor.standby.is_near


def worker() -> Worker:
    nothing = cast("Any", None)
    governor = SimpleNamespace(
        image=MemoryLog().image,
        metrics=SimpleNamespace(observe=lambda _: None),
        watch=SimpleNamespace(describe=dict),
        is_leader=False,
        time=0,
    )
    return Worker(cast("Any", governor), nothing, nothing, nothing, [])


def test_a_worker_tells_that_it_stands_by_until_the_log_may_be_its_own() -> None:
    async def story() -> list[bool]:
        one = worker()
        told = [one.describe()["standby"]]
        one.given_to_another()
        told.append(one.describe()["standby"])
        one._standby._reached = True
        told.append(one.describe()["standby"])
        await one.stop()
        told.append(one.describe()["standby"])
        assert not one.describe()["ready"]
        return told

    assert asyncio.run(story()) == [False, False, True, False]


@pytest.mark.parametrize(
    ("assigned", "told"),
    [(set(), ["given_to_another"]), ({TP(GOVERNANCE, 0)}, ["stop", "begin"])],
)
def test_a_worker_learns_from_its_group_whose_the_log_is(
    tmp_path: Path, assigned: set[TP], told: list[str]
) -> None:
    calls: list[str] = []

    class Told:
        def given_to_another(self) -> None:
            calls.append("given_to_another")

        async def stop(self) -> None:
            calls.append("stop")

        async def begin(self) -> None:
            calls.append("begin")

    async def story() -> None:
        life = cast("Any", Told())
        connection = Connection("127.0.0.1:1", "mesh.governor", "password", None)
        app = build(
            *(connection, lambda: life, "http://127.0.0.1:1", str(tmp_path)),
            session_timeout_s=2,
            reauth_s=60,
        )
        added: list[Any] = []
        app.add_future = added.append
        await app.on_partitions_assigned.send(assigned)
        for one in added:
            await one

    asyncio.run(story())
    assert calls == told
