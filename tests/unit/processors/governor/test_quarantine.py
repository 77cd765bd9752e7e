"""A copy of a record that was set aside is for people: one that is lost ends nothing."""

from typing import Any

import pytest

from mesh_events.kafka.connection import Connection
from mesh_events.record import Record
from processors.governor import quarantine as module
from processors.governor.quarantine import Copy


class Full:
    """A producer whose queue is full."""

    def __init__(self, _: object) -> None:
        self.polled = 0

    def produce(self, *_: object, **__: object) -> None:
        raise BufferError("Local: Queue full")

    def poll(self, _: float) -> None:
        self.polled += 1


def test_a_copy_that_cannot_be_kept_ends_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Producer", Full)
    copies: Any = module.Quarantine(Connection("east.invalid:9092", "u", "p"))
    copies.copy(Copy(Record(7, 1, None, b"x", {}), "garbage", "no record"))
    assert copies._producer.polled == 1
