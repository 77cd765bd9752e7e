"""`sdm generate`: made-up records for a topic, at a rate."""

import itertools
import json
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from mesh_events.errors import InvalidValueError
from mesh_events.meta import milliseconds
from self_service.cli.context import Mesh
from self_service.cli.exits import UsageError
from self_service.cli.logins import Login
from self_service.cli.options import Acting, command, noun
from self_service.cli.output import Detail, note, show
from self_service.cli.times import parse_time
from self_service.cli.topic import legal
from self_service.generator.kinds import KINDS, Options

app = noun("Made-up records.")

_PART = 100_000
_KINDS = "; ".join(f"{kind.name}: {kind.about}" for kind in KINDS.values())


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which records, how many, how fast."""

    kind: Annotated[str | None, typer.Option("--kind", help=f"{_KINDS}.")] = None
    schema: Annotated[
        Path | None, typer.Option("--schema", help="Or an Avro schema, with arg.properties.")
    ] = None
    key_field: Annotated[
        str | None, typer.Option("--key-field", help="With --schema: the field that is the key.")
    ] = None
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="How many; default: until Ctrl-C.")
    ] = None
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0.001, max=10_000_000, help="Records a second; default 10."),
    ] = None
    fast: Annotated[bool, typer.Option("--fast", help="As fast as Kafka takes them.")] = False
    seconds: Annotated[
        float | None, typer.Option("--for", metavar="SECONDS", min=0.1, help="For so long.")
    ] = None
    seed: Annotated[int, typer.Option("--seed", help="The same seed, the same records.")] = 1
    users: Annotated[
        int, typer.Option("--users", min=1, max=10_000_000, help="How many users there are.")
    ] = 100
    skew: Annotated[
        float,
        typer.Option(
            "--skew", min=0, max=10, help="Zipf's exponent of who is drawn; 0: all alike."
        ),
    ] = 0.0
    first: Annotated[
        int, typer.Option("--first", min=0, metavar="N", help="Begin with record N.")
    ] = 0
    start: Annotated[
        str | None,
        typer.Option("--start", metavar="TIME", help="Time of record 0; default: now."),
    ] = None


@command(
    app,
    "generate",
    "sdm generate east.clickstream --kind clickstream --rate 50",
    "sdm generate east.trades --kind trades --count 10000 --fast --seed 7 --skew 1.1",
    "sdm generate east.orders --schema order.avsc --key-field id --count 100",
)
def generate(
    acting: Acting,
    login: Login,
    wanted: Wanted,
    topic: Annotated[str, typer.Argument(help="The topic.", callback=legal)],
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", min=1, max=10_000, help="Make the topic with so many."),
    ] = None,
) -> None:
    """Write made-up records into a topic: a web site's requests, trades, or of any Avro schema.

    Record N is the same for the same options and seed; its time goes on with the rate. The schemas
    of keys and values are registered.
    """
    from self_service.cli import brokers, producing

    options = _options(wanted)
    mesh = Mesh()
    made = _made(wanted, options)
    connection = login.connection(mesh, acting.domain, topic)
    if partitions is not None and brokers.admin(connection).topic(topic) is None:
        brokers.create_topic(brokers.admin(connection), topic, partitions, {})
    brokers.require_topic(connection, topic)
    key, value = (_encoder(mesh, f"{topic}-{side}", one) for side, one in made.sides)

    def pairs(numbers: Iterable[int]) -> Iterator[tuple[bytes | None, bytes | None]]:
        for number in numbers:
            drawn = made.make(wanted.first + number)
            yield key(drawn[0]), value(drawn[1])

    if wanted.count is None and wanted.seconds is None:
        note(f"writing {topic} until Ctrl-C")
    began, written = time.monotonic(), 0
    with _stopped_by_ctrl_c() as stop:
        due = pairs(_due(wanted, stop))
        # in parts: where each record landed is kept until a part is written
        while part := len(producing.write(connection, topic, itertools.islice(due, _PART))):
            written += part
    took = time.monotonic() - began
    shown = {
        "topic": topic,
        "records": written,
        "seconds": round(took, 1),
        "rate": round(written / took) if took else 0,
        "next": wanted.first + written,
    }
    show(Detail(shown), acting.output)


@dataclass(frozen=True, slots=True)
class _Made:
    """Schemas of keys (None: there are none) and values, and what makes both of record n."""

    key: Any
    value: Any
    make: Callable[[int], tuple[Any, Any]]

    @property
    def sides(self) -> tuple[tuple[str, Any], tuple[str, Any]]:
        """Each side's name and schema."""
        return ("key", self.key), ("value", self.value)


@contextmanager
def _stopped_by_ctrl_c() -> Iterator[threading.Event]:
    """Set when Ctrl-C is pressed: what was made is still written, and counted."""
    stop = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def _options(wanted: Wanted) -> Options:
    if wanted.fast and wanted.rate is not None:
        raise UsageError("give --rate or --fast")
    now = datetime.now(UTC)
    start = milliseconds(parse_time(wanted.start, now) if wanted.start else now)
    rate = wanted.rate or (1000.0 if wanted.fast else 10.0)
    return Options(wanted.seed, wanted.users, wanted.skew, start, rate)


def _due(wanted: Wanted, stop: threading.Event) -> Iterator[int]:
    from self_service.generator.pace import due

    rate = None if wanted.fast else wanted.rate or 10.0

    def sleep(seconds: float) -> None:
        stop.wait(seconds)

    return itertools.takewhile(
        lambda _: not stop.is_set(), due(wanted.count, rate, wanted.seconds, sleep=sleep)
    )


def _made(wanted: Wanted, options: Options) -> _Made:
    if (wanted.kind is None) == (wanted.schema is None):
        raise UsageError(f"give either --kind ({', '.join(KINDS)}) or --schema FILE")
    if wanted.kind is not None:
        if wanted.key_field is not None:
            raise UsageError(f"--key-field is for --schema: {wanted.kind} has a key of its own")
        kind = KINDS.get(wanted.kind)
        if kind is None:
            raise InvalidValueError(f"{wanted.kind!r} is no kind: use {', '.join(KINDS)}")
        return _Made(kind.key, kind.value, kind.maker(options))
    return _of_schema(wanted, options)


def _of_schema(wanted: Wanted, options: Options) -> _Made:
    from self_service.cli import subjects
    from self_service.generator.from_schema import maker

    assert wanted.schema is not None  # noqa: S101 - asked for above
    value = json.loads(subjects.read_schema(wanted.schema))
    make = maker(value, options)
    name = wanted.key_field
    if name is None:
        return _Made(None, value, lambda number: (None, make(number)))
    fields: Mapping[str, Any] = {one["name"]: one["type"] for one in value.get("fields", ())}
    if name not in fields:
        raise InvalidValueError(f"{wanted.schema} has no field {name}: --key-field names one")

    def both(number: int) -> tuple[Any, Any]:
        made = make(number)
        return made[name], made

    return _Made(fields[name], value, both)


def _encoder(mesh: Mesh, subject: str, schema: Any) -> Callable[[Any], bytes | None]:
    """Data as bytes by a schema, which is registered; nothing is no bytes at all."""
    import io

    import fastavro

    from mesh_events import avro
    from self_service.cli import subjects

    if schema is None:
        return lambda _: None
    text = json.dumps(schema)
    head = b"\0" + subjects.register(mesh, subject, text).to_bytes(4, "big")
    parsed = avro.parsed(text)

    def encode(datum: Any) -> bytes | None:
        if datum is None:
            return None
        out = io.BytesIO()
        out.write(head)
        fastavro.schemaless_writer(out, parsed, datum)
        return out.getvalue()

    return encode
