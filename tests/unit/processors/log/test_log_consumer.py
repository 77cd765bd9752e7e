"""Faust's consumer of the log wakes the worker, whatever its Kafka library has read."""

import asyncio
from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord, TopicPartition
from faust.transport.drivers import aiokafka as driver

from processors.log.consumer import LogConsumerThread

PLACE = TopicPartition("mesh.governance", 0)


class Consumer:
    """Knows where the log ends."""

    def __init__(self, end: int) -> None:
        self.end, self.sought = end, list[int]()

    def highwater(self, _: Any) -> int:
        return self.end

    def seek(self, _: Any, offset: int) -> None:
        self.sought.append(offset)


def full(offset: int) -> ConsumerRecord:
    headers = (("ce_id", b"1"),)
    place = (PLACE.topic, PLACE.partition, offset)
    return ConsumerRecord(*place, 1, 1, b"key", b"value", None, 3, 5, headers)


def handed_over(
    monkeypatch: pytest.MonkeyPatch, offsets: list[int], consumer: Consumer
) -> list[ConsumerRecord]:
    async def fetched(*_: Any, **__: Any) -> dict[Any, list[Any]]:
        return {PLACE: [full(one) for one in offsets]}

    monkeypatch.setattr(driver.AIOKafkaConsumerThread, "_fetch_records", fetched)
    thread = object.__new__(LogConsumerThread)
    found = asyncio.run(thread._fetch_records(consumer, {PLACE}))
    return list(found[PLACE])


def test_what_faust_hands_over_has_no_content(monkeypatch: pytest.MonkeyPatch) -> None:
    """To its client a record whose attributes have two bytes is one that nobody else reads."""
    [one] = handed_over(monkeypatch, [7, 8, 9], Consumer(10))
    assert (one.offset, one.key, one.value, one.headers) == (9, None, None, ())


@pytest.mark.parametrize("offsets", [[7, 9], [1_000_007]])
def test_offsets_that_no_record_has_lead_to_the_end(
    monkeypatch: pytest.MonkeyPatch, offsets: list[int]
) -> None:
    consumer = Consumer(10)
    [one] = handed_over(monkeypatch, offsets, consumer)
    assert (one.offset, one.value, consumer.sought) == (9, None, [10])
