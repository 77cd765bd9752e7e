"""Faust's consumer of the log, which goes on where its Kafka library can read no further.

Kafka takes any bytes as the name of a header; aiokafka raises on one that is not UTF-8, for ever,
and Faust ends the worker. Here the consumer goes to the end instead. What it passed over the
worker reads by itself: it meets every gap in the offsets, and the end of the log every second.
"""

from typing import Any

import structlog
from faust.transport.drivers import aiokafka as driver

log = structlog.get_logger(__name__)


class LogConsumerThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]  # Faust is untyped
    """The thread in which aiokafka runs."""

    async def _fetch_records(
        self, consumer: Any, active_partitions: set[Any], *args: Any, **options: Any
    ) -> Any:
        try:
            return await super()._fetch_records(consumer, active_partitions, *args, **options)
        except UnicodeDecodeError as error:
            log.warning("record_passed_over", error=str(error))
            await consumer.seek_to_end()
            return {}


class LogConsumer(driver.Consumer):  # type: ignore[misc]  # Faust is untyped
    """What the app makes in place of the driver's own consumer."""

    def _new_consumer_thread(self) -> LogConsumerThread:
        return LogConsumerThread(self, loop=self.loop, beacon=self.beacon)
