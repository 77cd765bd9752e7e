"""Copies as real-time queries of a Spark Connect server."""

import json
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mesh_events.kafka.connection import TOPIC_IDS, Connection, known_topics
from spark_streams.copy import with_provenance
from spark_streams.engine import Answer, CopySpec, Failed, Running, States
from spark_streams.error_names import error_name
from spark_streams.errors import ENGINE_UNAVAILABLE, EngineError
from spark_streams.jvm import CONFIG
from spark_streams.session import PLAN_TIMEOUT_S, ConnectSession

BATCH = "5 minutes"
"""Between two batches a copy pauses for 0.1 s, and progress comes once per batch: so, seldom."""
DELIVERY_TIMEOUT_MS = 120_000
"""For so long the sink tries to write to a cluster that does not answer; then the query fails."""
WORK_BATCH = "1 minute"
"""The same where something is done with a record: from the last batch's end on it is read again."""
BATCH_BYTES = 131_072
"""What the sink's producer gathers at most before it sends; Kafka's default is an eighth of it."""
GONE = "the query is gone from the Spark Connect server, which may have been restarted"
_STOP_TIMEOUT_S = 15.0
_SEPARATOR = "|"


class SparkEngine:
    """Every copy is one query, named `<link>|<writer>|<partitions>`, in one lasting session.

    Threads that ask at the same time are served in turn: the session and the slots are shared.

    Args:
        remote, token, seed: as of `ConnectSession`.
        share: so many engines use the server, and this one an equal part of its task slots: no
            session sees another one's queries.
    """

    def __init__(self, remote: str, token: str | None, seed: str, share: int = 1) -> None:
        self._session = ConnectSession(remote, token, seed)
        self._share = share
        self._known: dict[str, Any] = {}
        self._turn = threading.Lock()

    def close(self) -> None:
        """Leave the server; the copies go on."""
        self._session.close()

    @property
    def is_stopped(self) -> bool:
        """Somebody else keeps it."""
        return False

    def states(self) -> States:
        """Every living query, also those started by an earlier process, and those that failed."""
        with self._turn:
            active = self._session.call("asking for the copies", _active)
            found: dict[str, list[Running | Failed]] = {}
            for name in active:
                link, writer, _ = name.rsplit(_SEPARATOR, 2)
                found.setdefault(link, []).append(Running(writer))
            answers = True
            for name in sorted(self._known.keys() - active.keys()):
                link, writer, _ = name.rsplit(_SEPARATOR, 2)
                why = self._fault(self._known[name]) if answers else None
                # one that hangs is not waited for once per query
                answers = why is not None
                found.setdefault(link, []).append(Failed(writer, *(why or (GONE, ""))))
            self._known = {name: self._known[name] for name in self._known if name not in active}
            self._known |= active
            return {link: tuple(states) for link, states in found.items()}

    def require_room(self, link: str, partitions: int) -> None:
        """Raise `engine_full` where the server has fewer free task slots than that."""
        with self._turn:
            self._require_slots(f"asking for task slots for {link}", link, partitions)

    def start(self, spec: CopySpec) -> None:
        """Start a copy and return when it lives."""
        with self._turn:
            doing = f"starting the copy {spec.link}"
            self._require_slots(doing, spec.link, len(spec.start))
            name = _SEPARATOR.join((spec.link, spec.writer, str(len(spec.start))))
            self._known[name] = self._session.call(
                doing, lambda s: _start(s, spec, name), PLAN_TIMEOUT_S
            )

    def stop(self, link: str) -> None:
        """Stop every query of a link and wait until it is gone."""
        with self._turn:
            doing = f"stopping the copy {link}"
            deadline = time.monotonic() + _STOP_TIMEOUT_S
            while found := _of(self._session.call(doing, _active), link):
                for query in found.values():
                    self._session.call(doing, _stopping(query))
                if time.monotonic() > deadline:
                    raise EngineError(
                        "engine_unavailable", f"{doing}: it goes on; see `sdm status`"
                    )
            for name in _of(self._known, link):
                del self._known[name]

    def progress(self, link: str) -> Mapping[int, int]:
        """Partition -> source offset up to which the last whole batch of the living query came."""
        with self._turn:
            doing = f"asking for the progress of {link}"
            found = _of(self._session.call(doing, _active), link)
            told = [self._session.call(doing, _progress_of(query)) for query in found.values()]
            return told[0] if len(told) == 1 else {}

    def ask(self, doing: str, act: Callable[[Any], Answer]) -> Answer:
        """What comes of `act`, which is given the session."""
        with self._turn:
            return self._session.call(doing, act, PLAN_TIMEOUT_S)

    def _require_slots(self, doing: str, link: str, partitions: int) -> None:
        active = self._session.call(doing, _active)
        master = self._session.call(doing, lambda s: str(s.conf.get("spark.master")))
        require_slots(master, active, link, partitions, self._share)

    def _fault(self, query: Any) -> tuple[str, str] | None:
        """Why a query ended, and Spark's own text of it; None from a server that says nothing."""
        try:
            fault = self._session.call("asking for an error", lambda _: query.exception())
        except EngineError as error:
            # a server that was started anew knows nothing of the old one's queries
            return None if error.code == ENGINE_UNAVAILABLE else (GONE, "")
        return (GONE, "") if fault is None else (error_name(str(fault)), str(fault))


def _stopping(query: Any) -> Callable[[Any], None]:
    return lambda _: query.stop()


def _progress_of(query: Any) -> Callable[[Any], dict[int, int]]:
    def ask(_: Any) -> dict[int, int]:
        told = query.lastProgress
        ends = [json.loads(source.endOffset or "null") for source in told.sources] if told else []
        offsets = next(iter(ends[0].values())) if ends and ends[0] else {}
        return {int(partition): int(offset) for partition, offset in offsets.items()}

    return ask


def require_slots(
    master: str, active: dict[str, Any], link: str, partitions: int, share: int = 1
) -> None:
    """Raise `engine_full` if the copy would wait for ever: a partition holds its slot for good.

    Args:
        master: `local[N]` or `local[*]`; another master has its own ways to grow.
        active: living queries by name.
        link: the copy that is to start.
        partitions: so many slots it needs.
        share: so many engines have an equal part of the slots.
    """
    match = re.fullmatch(r"local\[(\*|\d+)(?:,\d+)?\]", master)
    if match is None:
        return
    slots = (os.cpu_count() or 1 if match[1] == "*" else int(match[1])) // share
    used = sum(int(name.rsplit(_SEPARATOR, 1)[1]) for name in active)
    if used + partitions > slots:
        raise EngineError(
            "engine_full",
            f"{link} needs {partitions} task slots, but {used} of the {slots} that "
            f"{_kind(link)}s have on the Spark server are taken: stop another {_kind(link)} there, "
            "or give the server more (spark.master=local[N])",
        )


def _kind(flow: str) -> str:
    """What a flow is; a link's id has an @, a statement's never."""
    return "link" if "@" in flow else "statement"


def source_options(spec: CopySpec) -> dict[str, str]:
    """Options of Spark's Kafka source.

    `fetch.max.wait.ms` stays at its 500: less costs much idle CPU and makes nothing faster.
    """
    start = {spec.source_topic: {str(p): offset for p, offset in spec.start.items()}}
    return {
        **_login(spec.source),
        # not `subscribe`: at a batch's end that takes a task slot for each partition added since
        "assign": json.dumps({spec.source_topic: sorted(spec.start)}),
        "startingOffsets": json.dumps(start),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
        "kafka.isolation.level": "read_committed",
        f"kafka.{TOPIC_IDS}": known_topics({spec.source_topic: spec.origin.topic_id}),
    }


def sink_options(spec: CopySpec) -> dict[str, str]:
    """Options of Spark's Kafka sink; the producer is idempotent by default and has to stay so.

    What stands behind a batch that was refused is not sent (`jvm/PatchSender.scala`), nor in flight
    yet: the position is that of the last record, and what is not there before it would be lost.
    """
    # records that something was done with bring their topic along
    topic = {"topic": spec.destination_topic} if spec.work is None else {}
    return {
        **_login(spec.destination),
        **topic,
        # one that is larger than the destination takes is split into the same again, for ever
        "kafka.batch.size": str(min(BATCH_BYTES, spec.max_record_bytes)),
        "kafka.delivery.timeout.ms": str(DELIVERY_TIMEOUT_MS),
        "kafka.max.in.flight.requests.per.connection": "1",
        "kafka.max.request.size": str(spec.max_record_bytes),
    }


def _login(connection: Connection) -> dict[str, str]:
    return {f"kafka.{name}": value for name, value in connection.java().items()}


def _start(session: Any, spec: CopySpec, name: str) -> Any:
    if spec.work is None:
        return _started(session, spec, name)
    tables = f"{CONFIG}{spec.writer.rpartition('.')[0]}."
    # of a process that died between a start and what follows it
    _unset(session, tables)
    try:
        return _started(session, spec, name)
    finally:
        # the query has a clone of the session; here they would stay for as long as the server runs
        with suppress(Exception):
            _unset(session, tables)


def _unset(session: Any, prefix: str) -> None:
    for name in session.conf.getAll:
        if name.startswith(prefix):
            session.conf.unset(name)


def _started(session: Any, spec: CopySpec, name: str) -> Any:
    records = session.readStream.format("kafka").options(**source_options(spec)).load()
    if spec.work is None:
        out = with_provenance(records, spec.origin)
    else:
        out = spec.work.apply(session, records, spec.origin)
    return (
        out.writeStream.queryName(name)
        .format("kafka")
        .options(**sink_options(spec))
        .option("checkpointLocation", _checkpoint(session, spec))
        .outputMode("update")
        .trigger(realTime=BATCH if spec.work is None else WORK_BATCH)
        .start()
    )


def _checkpoint(session: Any, spec: CopySpec) -> str:
    """A fresh folder: Spark wants one, but the destination log is what a copy resumes from.

    It stays until the server starts anew: what a server answers does not decide what this process
    deletes.
    """
    scratch = Path(str(session.conf.get("spark.local.dir", "/tmp")).split(",")[0])  # noqa: S108
    mine = scratch / "links" / uuid.uuid5(uuid.NAMESPACE_URL, spec.link).hex
    return str(mine / spec.writer.rpartition(".")[2])


def _active(session: Any) -> dict[str, Any]:
    return {
        query.name: query
        for query in session.streams.active
        if query.name and query.name.count(_SEPARATOR) >= 2
    }


def _of(queries: dict[str, Any], link: str) -> dict[str, Any]:
    return {n: q for n, q in queries.items() if n.rsplit(_SEPARATOR, 2)[0] == link}
