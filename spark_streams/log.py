"""Looking into a topic without consuming it: where its partitions begin and end, what is last.

A `PartitionLog` is the port; `KafkaLog` is the real one. No groups, no commits. What is last is
read out of batches as they stand there: who writes a topic decides to how much a record unpacks.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from mesh_events.errors import InfrastructureError, StateFaultError
from mesh_events.kafka.connection import Connection, translating
from mesh_events.kafka.raw_fetch import Answer, RawTopics
from spark_streams.last import Each, First, Last, Search, Way

Passed = TypeVar("Passed", bound=Way)
Bounds = Mapping[int, tuple[int, int]]
"""Partition -> (first offset, end offset)."""
TIMEOUT_S = 15.0
_POLL_S = 0.05
_TRY_S = 2.0
_STEP = 16
_FETCH = 1024 * 1024
"""Bytes of a partition in one response, unless its first batch is larger."""
_BEGIN = 16 * 1024
"""As many of a search that mostly ends with the first record; eight times as many each time."""
LAST_S = 20.0
"""So long what comes is passed in a search for the last records, at most: millions of ends of
transactions, which cost a domain nothing to write, may stand behind them."""
_TOGETHER = 8
"""Partitions that are read at a time: a batch of each is kept meanwhile, of up to 17 MiB."""
MOST_CONSUMERS = 24
"""Threads that one log answers at the same time; the next one waits for the first that is done."""
OF_A_DOMAIN = 3
"""Of them those that ask for topics of one domain, by which their names begin."""


class TooLongError(InfrastructureError):
    """What was looked for was not found in the time that there was."""

    def __init__(self, doing: str, seconds: float) -> None:
        super().__init__(
            f"{doing}: more than {seconds:g} s of it was read; a topic's partition may have "
            "millions of offsets without a record, as ends of transactions",
            retriable=True,
        )


@dataclass(frozen=True, slots=True)
class Ahead:
    """What a partition has from an offset on.

    offset: of its first record, or up to which it has none.
    is_record: whether a record stands there.
    is_known: whether it was looked at as far as it was asked for.
    """

    offset: int
    is_record: bool
    is_known: bool

    @property
    def is_none(self) -> bool:
        """Whether there is no record."""
        return self.is_known and not self.is_record


class PartitionLog(Protocol):
    """A cluster's topics, as one login sees them. Methods raise MeshError subclasses only."""

    def bounds(self, topic: str, partitions: Iterable[int]) -> Bounds:
        """Where the partitions begin and end now."""

    def last(self, topic: str, within: Bounds, *, headers: bool = True) -> dict[int, Last]:
        """The last record in each range; partitions without a record there are left out.

        headers: without, they may be left out, and only the offset is wanted.

        Raises TooLongError after `LAST_S`.
        """

    def first(self, topic: str, within: Bounds, most_s: float) -> dict[int, Ahead]:
        """The first record in each range, as far as there is time to look for it."""

    def each(
        self,
        topic: str,
        within: Bounds,
        take: Callable[[int, Last], None],
        names: Sequence[bytes] = (),
        most_s: float = LAST_S,
    ) -> None:
        """Hand each record of each range to `take`, with its partition; a partition's in order.

        Ends of transactions are handed over as well.

        names: of a record that ends with headers of these names, only they are wanted.

        Raises TooLongError after `most_s`.
        """

    def close(self) -> None:
        """Leave Kafka."""


class KafkaLog:
    """Topics of a real cluster; each thread that asks has a consumer of its own meanwhile.

    Topics that do not answer hold up who asks for topics of the same domain, and nobody else.

    Args:
        connection: a login that may describe and read what it is asked for.
        committed: end offsets and records as `read_committed` sees them.
        timeout_s: how long to wait for an answer, seconds.
    """

    def __init__(
        self, connection: Connection, *, committed: bool = False, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._connection, self._committed, self._timeout_s = connection, committed, timeout_s
        self._where = f"at {connection.bootstrap_servers} as {connection.user}"
        self._config = {
            **connection.config(),
            # the client library wants a name; no group is ever joined
            "group.id": f"{connection.user}.log",
            "enable.auto.commit": False,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
        self._room = threading.BoundedSemaphore(MOST_CONSUMERS)
        # domain -> room for those who ask for its topics
        self._rooms: dict[str, threading.BoundedSemaphore] = {}
        self._making = threading.Lock()
        # the one that was used last is used next: the others are there for who comes beside it
        self._idle = [self._new()]

    def close(self) -> None:
        """Leave Kafka."""
        while self._idle:
            clients = self._idle.pop()
            clients.consumer.close()
            if clients.raw is not None:
                clients.raw.close()

    def _new(self) -> "_Clients":
        return _Clients(Consumer(self._config))

    @contextmanager
    def _clients(self, topic: str) -> Iterator["_Clients"]:
        """Clients that no other thread uses meanwhile, to ask for this topic."""
        with self._room_of(topic.partition(".")[0]), self._room:
            try:
                clients = self._idle.pop()
            except IndexError:
                clients = self._new()
            try:
                yield clients
            finally:
                self._idle.append(clients)

    def _room_of(self, domain: str) -> threading.BoundedSemaphore:
        with self._making:
            return self._rooms.setdefault(domain, threading.BoundedSemaphore(OF_A_DOMAIN))

    def bounds(self, topic: str, partitions: Iterable[int]) -> Bounds:
        """Where the partitions begin and end now."""
        doing = f"asking for the ends of {topic} {self._where}"
        with translating(doing), self._clients(topic) as clients:
            return {p: self._ends(clients.consumer, topic, p) for p in partitions}

    def _ends(self, consumer: Any, topic: str, partition: int) -> tuple[int, int]:
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                low, high = consumer.get_watermark_offsets(
                    TopicPartition(topic, partition), timeout=min(_TRY_S, self._timeout_s)
                )
            except KafkaException as error:
                if error.args[0].code() not in _MOVED or time.monotonic() > deadline:
                    raise
                # what the client remembers of the leader is out of date: it died, or the topic is
                # a new one
                with suppress(KafkaException):
                    consumer.list_topics(topic, timeout=_TRY_S)
                time.sleep(_POLL_S)
            else:
                return int(low), int(high)

    def last(self, topic: str, within: Bounds, *, headers: bool = True) -> dict[int, Last]:
        """The last record in each range.

        Ends of transactions, aborted and compacted records leave offsets without a record, so
        that ranges are searched from the back in growing steps.
        """
        found: dict[int, Last] = {}
        left = {p: (low, high) for p, (low, high) in within.items() if low < high}
        step, budget = 1, _Budget(LAST_S)
        while left:
            ranges = {p: (max(low, high - step), high) for p, (low, high) in left.items()}
            for at in range(0, len(ranges), _TOGETHER):
                some = dict([*ranges.items()][at : at + _TOGETHER])
                found |= self._search(topic, some, headers, budget)
            left = {
                p: (low, ranges[p][0])
                for p, (low, _) in left.items()
                if p not in found and ranges[p][0] > low
            }
            step *= _STEP
        return found

    def _search(
        self, topic: str, ranges: Bounds, headers: bool, budget: "_Budget"
    ) -> dict[int, Last]:
        """The last record of each [start, end), read from the start."""
        left = {p: Search(*within, committed=self._committed) for p, within in ranges.items()}
        found = {p: one.last(headers=headers) for p, one in self._passed(topic, left, budget)}
        if left:
            raise self._too_long(topic, budget.seconds)
        return {partition: last for partition, last in found.items() if last is not None}

    def first(self, topic: str, within: Bounds, most_s: float) -> dict[int, Ahead]:
        """The first record in each range, as far as there is time to look for it."""
        found = {p: Ahead(low, False, low >= high) for p, (low, high) in within.items()}
        left = [p for p, (low, high) in within.items() if low < high]
        budget = _Budget(most_s)
        for at in range(0, len(left), _TOGETHER):
            ways = {
                p: First(*within[p], committed=self._committed) for p in left[at : at + _TOGETHER]
            }
            for _ in self._passed(topic, dict(ways), budget, _BEGIN):
                pass
            for p, one in ways.items():
                is_record = one.last(headers=False) is not None
                found[p] = Ahead(one.position, is_record, one.is_done)
        return found

    def each(
        self,
        topic: str,
        within: Bounds,
        take: Callable[[int, Last], None],
        names: Sequence[bytes] = (),
        most_s: float = LAST_S,
    ) -> None:
        """Hand each record of each range to `take`, with its partition; a partition's in order."""
        left = [(p, low, high) for p, (low, high) in within.items() if low < high]
        budget = _Budget(most_s)
        for at in range(0, len(left), _TOGETHER):
            some = left[at : at + _TOGETHER]
            ways = {p: Each(low, high, partial(take, p), names) for p, low, high in some}
            for _ in self._passed(topic, ways, budget):
                pass
            if ways:
                raise self._too_long(topic, most_s)

    def _too_long(self, topic: str, seconds: float) -> TooLongError:
        return TooLongError(f"reading {topic} {self._where}", seconds)

    def _passed(
        self, topic: str, left: dict[int, Passed], budget: "_Budget", most: int = _FETCH
    ) -> Iterator[tuple[int, Passed]]:
        """Each partition once its way is done; it is not kept until all are: each holds a batch.

        Those that are not done when the budget is used up stay in `left`. What one waits for, its
        turn or an answer of Kafka, does not count: only what comes and is passed.
        """
        with self._clients(topic) as clients:
            if clients.raw is None:
                clients.raw = RawTopics(self._connection, self._timeout_s)
            deadline = time.monotonic() + self._timeout_s
            while left and budget.left_s > 0:
                offsets = {partition: one.position for partition, one in left.items()}
                answers = self._fetched(clients.raw, topic, offsets, most, deadline)
                if answers and self._took(topic, answers, left, deadline, budget):
                    deadline = time.monotonic() + self._timeout_s
                most = min(8 * most, _FETCH)
                for partition in [p for p, one in left.items() if one.is_done]:
                    yield partition, left.pop(partition)

    def _fetched(
        self,
        raw: RawTopics,
        topic: str,
        offsets: Mapping[int, int],
        most: int,
        deadline: float,
    ) -> dict[int, Answer | None]:
        """One response; nothing while a leader is away, or a topic is a new one."""
        try:
            return raw.fetch(topic, offsets, most, committed=self._committed)
        except InfrastructureError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)
            return {}

    def _took(
        self,
        topic: str,
        answers: Mapping[int, Answer | None],
        left: Mapping[int, Way],
        deadline: float,
        budget: "_Budget",
    ) -> bool:
        """Take in one response; whether there was anything in it for somebody."""
        doing = f"reading the end of {topic} {self._where}"
        came, offsets = time.monotonic(), {p: one.position for p, one in left.items()}
        for partition, answer in answers.items():
            if answer is None:
                place = f"partition {partition} has nothing at {offsets[partition]} any more"
                raise InfrastructureError(f"{doing}: {place}", retriable=True)
            try:
                left[partition].take(answer)
            except (StateFaultError, ValueError, IndexError) as error:
                place = f"partition {partition} cannot be read behind {offsets[partition]}: {error}"
                raise InfrastructureError(f"{doing}: {place}", retriable=False) from error
        moved = any(one.is_done or one.position != offsets[p] for p, one in left.items())
        budget.spend(time.monotonic() - came)
        if not moved and time.monotonic() > deadline:
            raise InfrastructureError(
                f"{doing}: no answer for partitions {sorted(left)}", retriable=True
            )
        if not moved:
            time.sleep(_POLL_S)
        return moved


class _Budget:
    """How long one search may pass what comes."""

    def __init__(self, seconds: float) -> None:
        self.seconds = self.left_s = seconds

    def spend(self, seconds: float) -> None:
        """Take from it."""
        self.left_s -= seconds


@dataclass(slots=True)
class _Clients:
    """What one thread asks with: for the ends, and for what stands there."""

    consumer: Any
    raw: RawTopics | None = None


_MOVED = {
    KafkaError._TIMED_OUT,  # noqa: SLF001 - the library's name
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - the client's own word for the same
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
}
