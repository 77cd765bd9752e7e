"""What the worker measures, for Prometheus: `GET /metrics`.

Counters and the histogram count what this process has seen while it governed, and begin at 0 with
it. Gauges are read at each scrape.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from mesh_events.connectors import ConnectorFailed
from mesh_events.decisions import Decision, IntentQuarantined, IntentRejected, RecordsSetAside
from mesh_events.facts import CheckFailed, EffectFailed, LinkFailed
from mesh_events.meta import Event
from mesh_events.record import Entry
from mesh_events.statements import StatementFailed
from projections.copied_facts import REMEMBERED
from projections.identity import Role
from projections.image import Image

CONTENT_TYPE = CONTENT_TYPE_LATEST
FAILURES = (
    IntentRejected,
    IntentQuarantined,
    RecordsSetAside,
    CheckFailed,
    EffectFailed,
    LinkFailed,
    StatementFailed,
    ConnectorFailed,
)
"""Events that count as a failure; their names are the kinds."""
LATENCY_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
"""Upper bounds of the histogram's buckets; a check that is not made ends after 60 s."""


class Metrics:
    """The measurements of one worker. Safe to use from its threads.

    Args:
        ticks: seconds that only go forward.
    """

    def __init__(self, ticks: Callable[[], float] = time.monotonic) -> None:
        self._ticks = ticks
        # a gauge beside each counter with the time of its first increment, which nobody asks for
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        # offset of an undecided intent -> when it was read
        self._read: dict[int, float] = {}
        # ids of the failed effects that were read last
        self._effects: deque[str] = deque(maxlen=REMEMBERED)
        self._latency = Histogram(
            "mesh_decision_latency_seconds",
            "Time from reading an intent to its decision, checks included",
            buckets=LATENCY_S,
            registry=self._registry,
        )
        self._failures = Counter(
            "mesh_failures",
            "Refusals and failures that count on the log, by type of event",
            ["kind"],
            registry=self._registry,
        )
        for kind in FAILURES:
            self._failures.labels(kind.type_name())

    def folded(self, entry: Entry, before: Image, image: Image, *, governs: bool) -> None:
        """A record was folded, between these two images."""
        event = entry.event
        if entry.offset in image.intents.undecided:
            self._read[entry.offset] = self._ticks()
        elif isinstance(event, RecordsSetAside):
            # a range of another version may hold intents that this one could judge
            for at in event.among(self._read):
                if at not in image.intents.undecided:
                    del self._read[at]
        elif isinstance(event, Decision) and event.offset not in image.intents.undecided:
            began = self._read.pop(event.offset, None)
            if governs and began is not None:
                self._latency.observe(self._ticks() - began)
        if isinstance(event, FAILURES) and self._counts(entry, event, before, image) and governs:
            self._failures.labels(event.type_name()).inc()

    def _counts(self, entry: Entry, event: Event, before: Image, image: Image) -> bool:
        """Whether the log counts an event: anybody who may append can forge one, or copy it."""
        match event:
            case Decision():
                return image.last_decision != before.last_decision
            case CheckFailed():
                return image.intents.checks is not before.intents.checks
            case LinkFailed():
                return image.links is not before.links
            case StatementFailed():
                return image.statements is not before.statements
            case ConnectorFailed():
                return image.connectors is not before.connectors
        # not every effect has a state of its own
        if (
            not image.identity.has_role(entry.signer, Role.CONTROLLER)
            or event.meta.id in self._effects
        ):
            return False
        self._effects.append(event.meta.id)
        return True

    def forget(self) -> None:
        """Everything that was folded is folded again."""
        self._read.clear()

    def observe(self, gauges: Callable[[], Iterable[Metric]]) -> None:
        """Add gauges that are read at each scrape."""
        self._registry.register(_Gauges(gauges))

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)


class _Gauges(Collector):
    """Gauges that are worked out when somebody asks."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        return self._collect()


def gauges(image: Image, *, governs: bool, end: int | None) -> Iterator[Metric]:
    """What is so now.

    Args:
        image: what is folded.
        governs: whether this worker decides.
        end: offset behind the log's last record; None where this worker has not asked for it.
    """
    governing = GaugeMetricFamily("mesh_governor", "1 while this worker governs")
    governing.add_metric([], governs)
    yield governing
    undecided = GaugeMetricFamily("mesh_undecided_intents", "Records without a decision")
    undecided.add_metric([], image.intents.open_count)
    yield undecided
    if end is not None:
        lag = GaugeMetricFamily("mesh_fold_lag_records", "Offsets of the log that are not folded")
        lag.add_metric([], max(0, end - 1 - image.offset))
        yield lag
    skew = GaugeMetricFamily(
        "mesh_clock_skew_seconds",
        "How far a clock is ahead of the mesh's: of the broker that leads the log, of the worker",
        labels=["clock"],
    )
    skew.add_metric(["broker"], image.skew / 1000)
    skew.add_metric(["worker"], image.worker_skew / 1000)
    yield skew
    disagree = GaugeMetricFamily("mesh_clocks_disagree", "1 while nothing ends by time")
    disagree.add_metric([], image.clocks_disagree)
    yield disagree
