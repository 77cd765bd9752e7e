"""Faust's consumer of the log, which wakes the worker and hands over nothing that it has read.

Kafka takes what its clients do not agree about: a record whose attributes have a second byte to
aiokafka is another record there, with any key, value and signature. So of what aiokafka has read
the last offset alone counts; the worker reads the log by itself.

Kafka takes any bytes as the name of a header; aiokafka raises on one that is not UTF-8, for ever,
and Faust ends the worker. Kafka takes any offset in an uncompressed batch as well, and lengths with
bits that it drops; aiokafka believes the former, so that Faust counts up to it, and raises on the
latter. Here the consumer goes to the end instead. The worker also meets every gap in the offsets,
and the end of the log every second.

Brokers end a session that does not log in anew, which aiokafka does not; see `sessions`.
"""

import asyncio
from itertools import pairwise
from typing import Any, ClassVar

import structlog
from aiokafka.errors import CorruptRecordException
from aiokafka.structs import ConsumerRecord
from faust.transport.drivers import aiokafka as driver

from processors.log import sessions

log = structlog.get_logger(__name__)


class LogConsumerThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]  # Faust is untyped
    """The thread in which aiokafka runs."""

    _renewing: asyncio.Task[None] | None = None

    async def on_start(self) -> None:
        """Begin to consume, and to renew the sessions."""
        await super().on_start()
        self._renewing = asyncio.create_task(
            sessions.renew(self._consumer._client, self.consumer.session_s)  # noqa: SLF001
        )

    async def on_thread_stop(self) -> None:
        """End both."""
        if self._renewing is not None:
            self._renewing.cancel()
        await super().on_thread_stop()

    async def _fetch_records(
        self, consumer: Any, active_partitions: set[Any], *args: Any, **options: Any
    ) -> Any:
        try:
            found = await super()._fetch_records(consumer, active_partitions, *args, **options)
            why = next((why for item in found.items() if (why := _odd(consumer, *item))), None)
            if why is None:
                return {at: [_bare(at, all_[-1].offset)] for at, all_ in found.items() if all_}
        except (UnicodeDecodeError, CorruptRecordException) as error:
            why = str(error)
        log.warning("record_passed_over", error=why)
        return _passed_over(consumer, active_partitions)


def _odd(consumer: Any, partition: Any, records: list[Any]) -> str | None:
    """What is wrong with the offsets of records that were fetched; None if nothing is."""
    for one, other in pairwise(records):
        if other.offset != one.offset + 1:
            return f"offset {other.offset} behind {one.offset}"
    end = consumer.highwater(partition)
    if records and end is not None and records[-1].offset >= end:
        return f"offset {records[-1].offset}, and the log ends at {end}"
    return None


def _bare(partition: Any, offset: int) -> ConsumerRecord:
    """A record without anything in it."""
    return ConsumerRecord(
        partition.topic, partition.partition, offset, 0, 1, None, None, None, -1, -1, ()
    )


def _passed_over(consumer: Any, partitions: set[Any]) -> dict[Any, list[Any]]:
    """Go on at the end; a record without anything in it for each partition."""
    found = {}
    for partition in partitions:
        end = consumer.highwater(partition)
        if end:
            consumer.seek(partition, end)
            found[partition] = [_bare(partition, end - 1)]
    return found


class LogConsumer(driver.Consumer):  # type: ignore[misc]  # Faust is untyped
    """What the app makes in place of the driver's own consumer.

    session_s: for how long brokers take a login to be good, seconds
    """

    session_s: ClassVar[float]

    def _new_consumer_thread(self) -> LogConsumerThread:
        return LogConsumerThread(self, loop=self.loop, beacon=self.beacon)


def log_consumer(session_s: float) -> type[LogConsumer]:
    """The class of the log's consumer; see `LogConsumer` for what it is given."""
    return type("LogConsumer", (LogConsumer,), {"session_s": session_s})
