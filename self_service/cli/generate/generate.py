"""`sdm generate`: made-up records for a topic, at a rate."""

import itertools
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from self_service.cli.framework.exits import UsageError
from self_service.cli.framework.options import Acting, command, noun
from self_service.cli.framework.output import Detail, note, show
from self_service.cli.generate import generating
from self_service.cli.generate.generating import Wanted
from self_service.cli.mesh.context import Mesh
from self_service.cli.mesh.logins import Login
from self_service.cli.topic.commands import legal

if TYPE_CHECKING:
    from mesh_events.kafka.connection import Connection

app = noun("Generated records.")

_PART = 100_000


@command(
    app,
    "generate",
    "sdm generate east.clickstream --kind clickstream --rate 50",
    "sdm generate east.trades --kind trades --count 10000 --fast --seed 7 --skew 1.1",
    "sdm generate east.orders --schema order.avsc --key-field id --count 100",
    "sdm generate east.orders --count 100",
    "sdm generate east.clickstream --kind clickstream --rate 50 --background --name clicks",
)
def generate(
    acting: Acting,
    login: Login,
    wanted: Wanted,
    topic: Annotated[str, typer.Argument(help="Topic to write to.", callback=legal)],
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            "-p",
            min=1,
            max=10_000,
            help="Create the topic with this number of partitions.",
        ),
    ] = None,
    background: Annotated[
        bool, typer.Option("--background", help="Run it in the local mesh: see `sdm generator`.")
    ] = False,
    name: Annotated[
        str | None,
        typer.Option("--name", help="With --background: its name; default: the topic."),
    ] = None,
) -> None:
    """Generate records into a topic: a web site's requests, trades, or records of an Avro schema.

    Record N is the same for the same options and seed; its time advances with the rate. Registers
    the schemas of keys and values. With --background the local mesh keeps it running and writes
    each record once, in transactions, until --count is reached or `sdm generator stop`.
    """
    wanted.require_sound()
    if background:
        from self_service.cli.generate import start

        start.require_fit(login, wanted)
        start.require_new(name or topic)
    elif name is not None:
        raise UsageError("--name needs --background")
    mesh = Mesh()
    recipe = wanted.recipe(mesh, topic)
    made = recipe.made()
    connection = login.connection(mesh, acting.domain, topic)
    _require_topic(connection, topic, partitions)
    encode = generating.encoder(mesh, topic, made)
    if background:
        domain = mesh.acting_as(acting.domain).domain
        begun = start.begin(connection, domain, topic, name or topic, wanted, recipe)
        show(Detail(begun), acting.output)
        return
    if wanted.count is None and wanted.seconds is None:
        note(f"writing {topic} until Ctrl-C")
    began = time.monotonic()
    written = _written(connection, topic, wanted, encode)
    took = time.monotonic() - began
    shown = {
        "topic": topic,
        "records": written,
        "seconds": round(took, 1),
        "rate": round(written / took) if took else 0,
        "next": wanted.first + written,
    }
    show(Detail(shown), acting.output)


def _require_topic(connection: "Connection", topic: str, partitions: int | None) -> None:
    """Make the topic where it is to be made; raises NotFoundError where it is not there.

    RefusedError for a login that may not write to it, before its schema is registered.
    """
    from self_service.cli.mesh import brokers

    if partitions is not None and brokers.admin(connection).topic(topic) is None:
        brokers.create_topic(brokers.admin(connection), topic, partitions, {})
    brokers.require_topic(connection, topic, to_write=True)


def _written(
    connection: "Connection", topic: str, wanted: Wanted, encode: generating.Encode
) -> int:
    """Write until the end or Ctrl-C; returns how many."""
    from self_service.cli.topic import producing

    written = 0
    with _stopped_by_ctrl_c() as stop:
        due = (encode(wanted.first + number) for number in _due(wanted, stop))
        # in parts: where each record landed is kept until a part is written
        while part := len(producing.write(connection, topic, itertools.islice(due, _PART))):
            written += part
    return written


@contextmanager
def _stopped_by_ctrl_c() -> Iterator[threading.Event]:
    """Set when Ctrl-C is pressed: what was made is still written, and counted."""
    stop = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def _due(wanted: Wanted, stop: threading.Event) -> Iterator[int]:
    from self_service.generator.pace import due

    def sleep(seconds: float) -> None:
        stop.wait(seconds)

    return itertools.takewhile(
        lambda _: not stop.is_set(), due(wanted.count, wanted.pace, wanted.seconds, sleep=sleep)
    )
