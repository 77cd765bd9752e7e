"""Faust's consumer of the log, which goes on where its Kafka library cannot.

Kafka takes any bytes as the name of a header; aiokafka raises on one that is not UTF-8, for ever,
and Faust ends the worker. Here the consumer goes to the end instead. What it passed over the
worker reads by itself: it meets every gap in the offsets, and the end of the log every second.

Where much was written the worker reads it by itself, too: what it has folded is not handed over.

Brokers end a session that does not log in anew, which aiokafka does not; see `sessions`.
"""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

import structlog
from faust.transport.drivers import aiokafka as driver

from processors import sessions

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
            return self._unfolded(found)
        except UnicodeDecodeError as error:
            log.warning("record_passed_over", error=str(error))
            await consumer.seek_to_end()
            return {}

    def _unfolded(self, found: dict[Any, list[Any]]) -> dict[Any, list[Any]]:
        """Without what was folded meanwhile, but for the last record: Faust counts by it."""
        folded = self.consumer.folded()
        return {
            partition: [one for one in records if one.offset > folded] or records[-1:]
            for partition, records in found.items()
        }


class LogConsumer(driver.Consumer):  # type: ignore[misc]  # Faust is untyped
    """What the app makes in place of the driver's own consumer.

    session_s: for how long brokers take a login to be good, seconds
    folded: offset of the last record that is folded
    """

    session_s: ClassVar[float]
    folded: ClassVar[Callable[[], int]]

    def _new_consumer_thread(self) -> LogConsumerThread:
        return LogConsumerThread(self, loop=self.loop, beacon=self.beacon)


def log_consumer(session_s: float, folded: Callable[[], int]) -> type[LogConsumer]:
    """The class of the log's consumer; see `LogConsumer` for what it is given."""
    given = {"session_s": session_s, "folded": staticmethod(folded)}
    return type("LogConsumer", (LogConsumer,), given)
