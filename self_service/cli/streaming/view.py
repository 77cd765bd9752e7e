"""`sdm streaming sql list|ps|describe`: the statements, and how far each has come."""

from typing import Annotated, Any

import typer

from mesh_events.errors import MeshError
from projections.image import Image
from projections.statements import Statement
from self_service.cli.framework.exits import NotFoundError
from self_service.cli.framework.options import OfDomain, Reading, Shown, command
from self_service.cli.framework.output import Detail, Listing, Multiline, show
from self_service.cli.framework.times import stamp
from self_service.cli.link.lag import reached, stands_still, with_open
from self_service.cli.mesh import lookup
from self_service.cli.mesh.callers import current_domain
from self_service.cli.mesh.context import Mesh
from self_service.cli.mesh.lookup import identity
from self_service.cli.streaming.app import Name, sql_app

COLUMNS = ("statement", "state", "reads", "fills", "changed_at", "failure")
RUNNING = ("statement", "state", "incarnation", "lag", "dead_letters", "changed_at", "failure")


@command(sql_app, "list", "sdm streaming sql list", "sdm streaming sql list --as-of '1h ago'")
def list_statements(
    reading: Reading,
    of: OfDomain = None,
    every: Annotated[bool, typer.Option("--all", help="Also list deleted statements.")] = False,
) -> None:
    """List the statements with their sources, destinations and states."""
    image = Mesh().image(reading)
    items = [fields(one) for one in _of(image, of) if every or one.stands]
    show(Listing(COLUMNS, items, "no statements: `sdm streaming sql add`"), reading.output)


@command(sql_app, "ps", "sdm streaming sql ps")
def processes(shown: Shown, of: OfDomain = None) -> None:
    """List the statements that should be running, and their lag behind the stream.

    Lag is the number of offsets of the stream after the last record with a result. If a statement
    skips records, its lag is at most that. An open transaction in a topic that it reads is noted:
    records after it are read once it ends.
    """
    mesh = Mesh()
    image = mesh.image()
    running = [one for one in _of(image, of) if one.desired == "RUNNING"]
    items = [
        {**fields(one), "lag": _lag(mesh, image, one), "dead_letters": _dead(mesh, image, one)}
        for one in running
    ]
    for cluster in sorted({one.cluster for one in running}):
        reads = (topic for one in running if one.cluster == cluster for topic in one.reads)
        stands_still(mesh, image, cluster, reads)
    show(Listing(RUNNING, items, "no statement should be running"), shown.output)


@command(sql_app, "describe", "sdm streaming sql describe click-users")
def describe(reading: Reading, name: Name) -> None:
    """Describe a statement: its text, topics, state and positions.

    While a transaction is open in a topic that it reads, its last stable offset is shown (now
    only).
    """
    mesh = Mesh()
    image = mesh.image(reading)
    found = lookup.statement(image, identity(name, current_domain(mesh.home) or ""))
    now = {}
    if reading.is_now and found.stands:
        now["open_transactions"] = stands_still(mesh, image, found.cluster, found.reads)
    told = {
        **fields(found),
        "failure_file": mesh.error_file("statement", found.id, found.failure_code),
        "sql": Multiline(found.sql),
        "names": dict(found.names),
        "positions": dict(sorted(found.positions.items(), key=lambda pair: int(pair[0]))),
        "principal": found.principal,
        **now,
        "stream_topic_id": found.stream_topic_id,
        "destination_topic_id": found.destination_topic_id,
    }
    show(Detail(told), reading.output)


def fields(found: Statement) -> dict[str, Any]:
    """A statement as lists show it."""
    return {
        "statement": found.id,
        "description": found.description,
        "cluster": found.cluster,
        "stream": found.stream,
        "tables": list(found.tables),
        "reads": list(found.reads),
        "fills": found.destination,
        "dead_letter_topic": found.dead_letters,
        "application": found.application,
        "begin": found.begin,
        "state": found.state,
        "desired": found.desired,
        "held": found.held,
        "incarnation": found.incarnation,
        "run": found.run,
        "schema_id": found.schema_id,
        "failure_code": found.failure_code,
        "failure": found.failure,
        "created_at": stamp(found.created_at),
        "changed_at": stamp(found.changed_at),
        "generation": found.generation,
    }


def _of(image: Image, domain: str | None) -> list[Statement]:
    if domain is not None:
        lookup.domain(image, domain)
    return [one for _, one in sorted(image.statements.items()) if domain in (None, one.domain)]


def _lag(mesh: Mesh, image: Image, found: Statement) -> int | str:
    """Offsets from the last record that came out to the stream's end, or why nobody can say."""
    if found.stream_topic_id is None:
        return "not started yet"
    from contextlib import closing

    from self_service.cli.mesh import brokers
    from spark_streams.lag import behind
    from spark_streams.log import KafkaLog

    try:
        login = mesh.administration(image, found.cluster)
        try:
            opened = brokers.open_transactions(login, found.stream)
        except NotFoundError:
            return "the stream is gone"
        partitions = len(brokers.offsets(login, found.destination))
        with closing(KafkaLog(login, committed=True)) as stream, closing(KafkaLog(login)) as out:
            come = reached(out, found, partitions)
            late = behind(stream, found.stream, come)
        return sum(with_open(late, come, opened).values())
    except MeshError as error:
        return f"not checked: {error}"


def _dead(mesh: Mesh, image: Image, found: Statement) -> int | str:
    """How many records wait among the dead letters."""
    from self_service.cli.mesh import brokers

    try:
        login = mesh.administration(image, found.cluster)
        ends = brokers.offsets(login, found.dead_letters)
    except MeshError as error:
        return f"not checked: {error}"
    return sum(high - low for low, high in ends.values())
