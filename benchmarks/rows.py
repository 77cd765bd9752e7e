"""The rows of the table of figures: which value of which result, beside what, with its goal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Place = tuple[str, ...]
"""The label of a row in a result file, and the fields of it: none for its p50 and p99."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure was to be.

    Attributes:
        text: as it is shown.
        field: of the figure that is compared: another one is no part of the goal.
        value: what the field may be at most, or at least.
        is_least: whether more is better.
        is_ratio: whether `value` is for the ratio to what stands beside the figure.
    """

    text: str
    field: str
    value: float
    is_least: bool = False
    is_ratio: bool = False

    def is_missed(
        self, figure: Mapping[str, float], beside: Mapping[str, float] | None = None
    ) -> bool:
        """Whether a figure is not what it was to be, beside the other one of its row."""
        found = figure[self.field]
        if self.is_ratio:
            assert beside is not None, f"{self.text} is a goal beside nothing"
            found /= beside[self.field]
        return found < self.value if self.is_least else found > self.value


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.

    Attributes:
        text: what is measured.
        file: the result that it stands in.
        ours: where.
        beside: what the floor or the peer of the same run is called, and where it stands.
        goal: what it was to be; None for no goal.
        bound: what bounds it.
        short: whether it stands in the README as well.
    """

    text: str
    file: str
    ours: Place
    beside: tuple[str, Place] | None = None
    goal: Goal | None = None
    bound: str = ""
    short: bool = False


_FETCH = "a fetch that waits is answered once, within half a second"
_FOLD = "the fold: a record is decided when those before it are folded"
_SIGNATURE = "signatures, checked one after the other"
_GOVERNOR = "one process that checks, judges, encodes and signs each, beside its broker"
_SHOWN = "the fold of the whole log, and the text of each record"
_ROWS = "Avro to Spark's rows and back, and code that is compiled anew for each statement"
STREAMS, STREAMS_EXACTLY = "Kafka Streams", "Kafka Streams, exactly once"

ROWS: Sequence[Row] = (
    Row(
        "warm `sdm up` to ready",
        "start",
        ("warm up to ready", "seconds"),
        goal=Goal("12 s", "seconds", 12),
        bound="the start of two brokers and the registry on two cores",
        short=True,
    ),
    Row(
        "the demo's story, from an empty home",
        "start",
        ("the story, with a fresh start", "seconds"),
        short=True,
    ),
    Row(
        "memory of all services, without a domain's Spark server",
        "start",
        ("memory in all (RSS)", "mib"),
        short=True,
    ),
    Row(
        "intent → row on `mesh.catalog`",
        "control",
        ("intent -> row on mesh.catalog",),
        ("a record written and read", ("floor: record written -> read",)),
        short=True,
    ),
    Row(
        "grant → first read, shared cluster",
        "control",
        ("grant -> first read, shared cluster",),
        ("a right given by hand", ("floor: right given by hand -> first read",)),
        short=True,
    ),
    Row(
        "revoke → refused, shared cluster",
        "control",
        ("revoke -> refused, shared cluster",),
        bound=_FETCH,
        short=True,
    ),
    Row(
        "grant → first read, over a new link",
        "control",
        ("grant -> first read, over the link",),
        bound="the first query of the domain's Spark server",
        short=True,
    ),
    Row(
        "revoke → refused, over the link",
        "control",
        ("revoke -> refused, over the link",),
        bound=_FETCH,
    ),
    Row(
        "intents of 20 domains decided, signatures checked",
        "decisions",
        ("decisions", "per_s"),
        goal=Goal("1 000/s", "per_s", 1000, is_least=True),
        bound=_GOVERNOR,
        short=True,
    ),
    Row(
        "the same, the slowest of five rounds",
        "decisions",
        ("decisions", "least_per_s"),
        goal=Goal("1 000/s", "least_per_s", 1000, is_least=True),
    ),
    Row("intent → row, alone", "decisions", ("intent -> row, alone",)),
    *(
        Row(
            f"intent → row, beside {flood}",
            "decisions",
            (f"intent -> row, beside {flood}",),
            ("alone", ("intent -> row, alone",)),
            goal=Goal("p99 20 ms", "p99_ms", 20),
            bound=_FOLD,
            short=flood == "signed intents",
        )
        for flood in ("unusable records", "signed intents", "statements to check")
    ),
    *(
        Row(
            f"an operator's freeze → decision, beside {flood}",
            "decisions",
            (f"freeze -> decision, beside {flood}",),
            goal=Goal("1 s", "max_ms", 1000),
            short=flood == "signed intents",
        )
        for flood in ("unusable records", "signed intents", "statements to check")
    ),
    Row(
        "`sdm audit log` of 100 000 events",
        "decisions",
        ("audit log, all",),
        goal=Goal("2 s for 20 000", "p50_ms", 10_000),
        bound=_SHOWN,
    ),
    Row("the last 20 of them", "decisions", ("audit log, the last 20",)),
    Row(
        "a record through a link, 1 000/s",
        "link",
        ("SPARK: 1000 records/s, read at the copy",),
        ("read at the source", ("floor: 1000 records/s, read at the source",)),
        short=True,
    ),
    Row(
        "the same, by MirrorMaker",
        "link",
        ("MIRRORMAKER: 1000 records/s, read at the copy",),
        ("read at the source", ("floor: 1000 records/s, read at the source",)),
    ),
    Row(
        "a backlog of 500 000 records copied, from `link resume` on",
        "link",
        ("SPARK: backlog of 500000 records, from resume to the end", "records/s"),
        short=True,
    ),
    Row(
        "the same, by MirrorMaker",
        "link",
        ("MIRRORMAKER: backlog of 500000 records, from resume to the end", "records/s"),
    ),
    *(
        Row(
            f"2 000 000 clicks joined with 100 000 users, beside {peer}",
            "click_users",
            ("statement", "drain, records/s"),
            (peer, (peer, "drain, records/s")),
            goal=Goal("1.5 times it", "drain, records/s", 1.5, is_least=True, is_ratio=True),
            bound=_ROWS,
            short=peer == STREAMS,
        )
        for peer in (STREAMS, STREAMS_EXACTLY)
    ),
    *(
        Row(
            f"CPU time of a joined click, beside {peer}",
            "click_users",
            ("statement", "cpu_us"),
            (peer, (peer, "cpu_us")),
            goal=Goal("less than it", "cpu_us", 1, is_ratio=True),
        )
        for peer in (STREAMS, STREAMS_EXACTLY)
    ),
    *(
        Row(
            f"a click to its row with the user, 1 000/s, beside {peer}",
            "click_users",
            ("statement",),
            (peer, (peer,)),
            goal=Goal("its p99", "p99_ms", 1, is_ratio=True),
            short=peer == STREAMS,
        )
        for peer in (STREAMS, STREAMS_EXACTLY)
    ),
    Row(
        "clicks joined with 1 000 000 users",
        "join_size",
        ("1000000 users", "drain, records/s"),
        ("with 1 000 users", ("1000 users", "drain, records/s")),
    ),
    Row(
        "a log of 1 000 000 events replayed",
        "replay",
        ("replay", "events/s"),
        ("read and decoded", ("floor: consume and decode", "events/s")),
        goal=Goal("200 000/s", "events/s", 200_000, is_least=True),
        bound="the fold, one event after the other",
        short=True,
    ),
    Row(
        "the same, verified by checkpoints",
        "replay",
        ("replay, covered by checkpoints", "events/s"),
        ("read and decoded", ("floor: consume and decode", "events/s")),
    ),
    Row(
        "the same, with every signature",
        "replay",
        ("replay, signatures checked", "events/s"),
        ("read and decoded", ("floor: consume and decode", "events/s")),
        bound=_SIGNATURE,
    ),
    Row(
        "`sdm audit verify`, every signature and decision",
        "verify",
        ("verify, with every signature and decision", "events/s"),
        ("read, hashed and decoded", ("floor: consume, hash, decode", "events/s")),
        bound=_SIGNATURE,
        short=True,
    ),
    Row(
        "the same, hashes where a checkpoint covers",
        "verify",
        ("verify, hashes of what is covered", "events/s"),
        ("read, hashed and decoded", ("floor: consume, hash, decode", "events/s")),
    ),
    Row(
        "who may read a product, at any offset of 1 000 000",
        "snapshots",
        ("who may read one product",),
        short=True,
    ),
    Row("the whole catalog, at any offset", "snapshots", ("the whole catalog",)),
    Row("snapshots made", "snapshots", ("made", "events/s")),
    Row(
        "10 000 000 unusable records folded and decided",
        "garbage",
        ("worker", "folded_and_decided_s"),
    ),
    Row(
        "memory of the worker after it",
        "garbage",
        ("worker", "after_mib"),
        ("before", ("worker", "before_mib")),
        bound="a hash of each is kept until a checkpoint covers it",
    ),
    Row("the standby takes over then", "garbage", ("standby takes over", "ready_s")),
    Row("a worker that starts anew has folded them", "garbage", ("restarted", "folded_s")),
)
"""In the order of the table."""
