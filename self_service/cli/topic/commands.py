"""`sdm topic`: topics, and the records in them."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mesh_events.errors import (
    ConfigurationError,
    InfrastructureError,
    InvalidValueError,
    MeshError,
    RefusedError,
)
from mesh_events.topics import INTERNAL_PREFIXES
from projections.links import Copy
from projections.rules import names
from self_service.cli.framework import interruption
from self_service.cli.framework.exits import UsageError
from self_service.cli.framework.options import Acting, command, noun
from self_service.cli.framework.output import Detail, Format, Listing, note, show
from self_service.cli.mesh.context import Mesh
from self_service.cli.mesh.logins import Login
from self_service.cli.topic.readers import connector_into, filled_by, statement_into, users
from self_service.cli.topic.record_options import Input, Range, Schema, SchemaKind

if TYPE_CHECKING:
    from mesh_events.kafka.connection import Connection
    from processors.clusters.kafka import ClusterAdmin
    from projections.image import Image

app = noun("Topics hold streams of records.")

MOST_PARTITIONS = 10_000
"""As many Kafka makes at once."""


def legal(name: str) -> str:
    """The name, if Kafka can have a topic so; raises InvalidValueError before anybody is asked."""
    if not names.TOPIC.fullmatch(name) or name in (".", ".."):
        raise InvalidValueError(
            f"{name!r} cannot be a topic: use a-z, A-Z, 0-9, '.', '_' and '-', at most 249"
        )
    return name


Name = Annotated[str, typer.Argument(help="Name of the topic.", callback=legal)]


@command(
    app, "list", "sdm topic list", "sdm topic list --cluster west -o json", "sdm topic list --all"
)
def list_topics(
    acting: Acting,
    login: Login,
    every: Annotated[
        bool, typer.Option("--all", help="Also list the platform's own topics.")
    ] = False,
) -> None:
    """List the topics that the login may see."""
    from self_service.cli.mesh import brokers

    connection = login.connection(Mesh(), acting.domain)
    items = [
        {"topic": name, "partitions": partitions}
        for name, partitions in sorted(brokers.topics(connection).items())
        if every or not name.startswith(INTERNAL_PREFIXES)
    ]
    empty = f"{connection.user} sees no topics at {connection.bootstrap_servers}"
    show(Listing(("topic", "partitions"), items, empty), acting.output)


@command(
    app,
    "create",
    "sdm topic create east.users",
    "sdm topic create east.clicks -p 4 --schema click.avsc --config retention.ms=86400000",
)
def create(
    acting: Acting,
    login: Login,
    name: Name,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions", "-p", min=1, max=MOST_PARTITIONS, help="Number of partitions."
        ),
    ] = 1,
    config: Annotated[
        list[str] | None, typer.Option("--config", metavar="NAME=VALUE", help="Topic setting.")
    ] = None,
    schema: Schema = None,
    kind: SchemaKind = None,
) -> None:
    """Create a topic and register the schema of its values."""
    from self_service.cli.mesh import brokers
    from self_service.cli.schema import subjects
    from self_service.cli.schema.register import register_next

    mesh, settings = Mesh(), _settings(config)
    subject = f"{name}-value"
    # what is no schema is told before the topic is made
    draft = subjects.draft(mesh, subject, schema, kind) if schema else None
    admin = brokers.admin(login.connection(mesh, acting.domain, name))
    if _present(admin, name):
        raise RefusedError("topic_exists", f"{name} exists already: see `sdm topic describe`")
    interruption.became(f"{name} may exist: see `sdm topic describe {name}`")
    brokers.create_topic(admin, name, partitions, settings)
    shown: dict[str, Any] = {"topic": name, "partitions": partitions}
    if draft is not None and schema is not None:
        shown["schema_subject"] = subject
        try:
            shown["schema_id"] = register_next(mesh, subject, schema, draft)
        except MeshError:
            note(
                f"{name} was created and has no schema yet: correct the file, then "
                f"`sdm schema register {name} FILE`"
            )
            raise
    show(Detail(shown), acting.output)


def _present(admin: "ClusterAdmin", name: str) -> bool:
    """Whether the topic is there; a refusal says which topics a domain may make."""
    try:
        return admin.topic(name) is not None
    except RefusedError as error:
        own = "a domain's own topics begin with its name and a dot; choose the domain with -d"
        raise RefusedError(error.code, f"{error}; {own}") from error


@command(
    app, "describe", "sdm topic describe east.users", "sdm topic describe mesh.governance -o json"
)
def describe(acting: Acting, login: Login, name: Name) -> None:
    """Describe a topic: its partitions, offsets, settings, schemas and products."""
    from self_service.cli.mesh import brokers

    mesh = Mesh()
    connection = login.connection(mesh, acting.domain, name)
    found = brokers.admin(connection).topic(name)
    if found is None:
        raise brokers.unknown_topic(connection, name)
    image = mesh.image()
    ranges = [
        {"partition": number, "first": low, "end": high}
        for number, (low, high) in sorted(brokers.offsets(connection, name).items())
    ]
    versions = {side: mesh.registry.latest(f"{name}-{side}") for side in ("key", "value")}
    shown = {
        "topic": name,
        "cluster": connection.bootstrap_servers,
        "topic_id": found.id,
        "partitions": found.partitions,
        "key_schema": _schema(mesh, versions["key"]),
        "value_schema": _schema(mesh, versions["value"]),
        "products": [one.id for one in image.catalog.values() if one.topic == name],
        "copies_of": _copies(image, connection, name),
        "filled_by": filled_by(image, name),
        "config": dict(sorted(found.config.items())),
    }
    parts = {"offsets": Listing(("partition", "first", "end"), ranges)}
    show(Detail(shown, parts), acting.output)


def _copies(image: "Image", connection: "Connection", topic: str) -> list[str]:
    """Products of which a topic at a place is the copy; the source may have the same name."""
    return [
        link.product
        for link in image.links.values()
        if link.topic == topic
        and link.copy is not Copy.PURGED
        and image.identity.clusters[link.cluster].bootstrap_servers == connection.bootstrap_servers
    ]


@command(
    app,
    "produce",
    """echo '{"userid": 1, "name": "a"}' | sdm topic produce east.users --key-field userid""",
    "sdm topic produce east.users --schema user.avsc --file users.jsonl",
    "sdm topic produce east.notes --raw --separator : --value 'k1:first note'",
    "sdm topic produce east.users --key 1 --tombstone",
)
def produce(acting: Acting, login: Login, given: Input, name: Name) -> None:
    """Write records, one per line: JSON if the topic has a schema, else text.

    Values are encoded with the subject's latest schema, or with --schema: Avro, JSON Schema, or the
    first message of a Protobuf schema. --schema is registered first, as with `schema register`: a
    schema that breaks a reader is refused.
    """
    from self_service.cli.mesh import brokers
    from self_service.cli.topic import producing
    from self_service.cli.topic.denial import advising

    given.check()
    if given.schema is None:
        interruption.became("nothing was written")
    mesh = Mesh()
    connection = login.connection(mesh, acting.domain, name)
    with advising(mesh, name, connection.user, writing=True):
        brokers.require_topic(connection, name, to_write=given.schema is not None)
    _require_own(mesh, name)
    keys = producing.Encoder.of(mesh, f"{name}-key", None, raw=given.raw)
    pairs: list[tuple[bytes | None, bytes | None]]
    if given.tombstone:
        pairs = [(keys.encode_key(given.key or ""), None)]
    else:
        values = producing.Encoder.of(
            mesh, f"{name}-value", given.schema, given.kind, raw=given.raw
        )
        shape = producing.Lines(given.key, given.separator, given.key_field)
        # all are encoded before the first is written: a bad line writes nothing
        try:
            pairs = list(producing.records(given.lines(), shape, keys, values))
        except MeshError:
            note("nothing was written")
            raise
    interruption.became(
        f"some of {len(pairs)} records may be written to {name}: see `sdm topic describe {name}`"
    )
    with advising(mesh, name, connection.user, writing=True):
        written = producing.write(connection, name, pairs)
    last = [{"partition": one, "offset": offset} for one, offset in written[-1:]]
    shown = {"topic": name, "written": len(written), "last": last[0] if last else None}
    show(Detail(shown), acting.output)


@command(
    app,
    "consume",
    "sdm topic consume east.users --max 10",
    "sdm topic consume mesh.catalog -o json",
    "sdm topic consume east.users --application west.analytics --follow --max 1 --timeout 30",
    "sdm topic consume east.users --client analytics.properties --from -5 --headers",
)
def consume(acting: Acting, login: Login, wanted: Range, name: Name) -> None:
    """Read records up to the end, or continuously, decoded with the schemas that they name.

    Without --follow, reading stops at the end offsets that the topic had when it began. Avro, JSON
    Schema and Protobuf are decoded. A record that does not fit its schema is reported, and what can
    be read of it is shown.

    Each record is one line: partition@offset, time, key, value. With -o json it is one JSON object
    per line. With --follow, --max and --timeout the exit code is 5 if fewer records came.
    """
    from self_service.cli.link.lag import note_open, still_fills
    from self_service.cli.topic import consuming, record_view
    from self_service.cli.topic.denial import advising

    start, last = consuming.position(wanted.start)
    mesh = Mesh()
    connection = login.connection(mesh, acting.domain, name)
    asked = consuming.Wanted(
        name, start, last, wanted.partition, wanted.most, wanted.timeout, wanted.follow
    )
    decoder, count = record_view.Decoder(mesh), 0
    with advising(mesh, name, connection.user):
        for message in consuming.read(connection, asked):
            document = decoder.document(message, headers=wanted.headers)
            record_view.write(document, acting.output)
            if acting.output is Format.TABLE:
                record_view.note_misfits(document)
            count += 1
    if acting.output is Format.TABLE:
        note(f"{count} records")
    if not wanted.follow and wanted.most is None:
        note_open(connection, name, wanted.partition)
    if (
        count == 0
        and not wanted.follow
        and (waiting := still_fills(mesh, name, connection.bootstrap_servers))
    ):
        note(waiting)


@command(app, "delete", "sdm topic delete east.old --yes")
def delete(
    acting: Acting,
    login: Login,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete a topic and its records; refused if it carries a product or is in use."""
    from self_service.cli.mesh import brokers

    mesh = Mesh()
    connection = login.connection(mesh, acting.domain, name)
    admin = brokers.admin(connection)
    if admin.topic(name) is None:
        raise brokers.unknown_topic(connection, name)
    image = mesh.image()
    carried = [one.id for one in image.catalog.values() if one.topic == name]
    if carried:
        raise RefusedError(
            "topic_in_use",
            f"{name} carries the product {', '.join(carried)}: consumers rely on it, and a product "
            "cannot be withdrawn yet",
        )
    if used := users(image, name):
        raise RefusedError(
            "topic_in_use",
            f"{name} is read or filled by {', '.join(used)}, which could not continue, not even "
            "with a new topic of that name: delete that first",
        )
    if not yes and not (sys.stdin.isatty() and typer.confirm(f"Delete {name}?", err=True)):
        raise RefusedError("not_confirmed", f"{name} was not deleted: add --yes")
    admin.delete_topic(name)
    show(Detail({"topic": name, "deleted": True}), acting.output)


def _require_own(mesh: Mesh, name: str) -> None:
    """Refuse to write into what a statement or a connector fills.

    A statement finds where to go on by its last records; a connector's are changes of rows.
    """
    try:
        image = mesh.image()
    except (ConfigurationError, InfrastructureError):
        # a client's settings alone do not let one read the log, nor need it
        return
    if (connector := connector_into(image, name)) is not None:
        raise RefusedError(
            "topic_in_use",
            f"{name} is filled by the connector {connector}, and its readers would take your "
            "record for a change of a row: change the row, or delete the connector first",
        )
    if (statement := statement_into(image, name)) is not None:
        raise RefusedError(
            "topic_in_use",
            f"{name} is filled by the statement {statement}, which could not resume after your "
            "record: write to a topic that it reads, or delete the statement first",
        )


def _schema(mesh: Mesh, found: tuple[int, int] | None) -> dict[str, Any] | None:
    if found is None:
        return None
    kind = mesh.registry.definition(found[0]).kind
    return {"id": found[0], "version": found[1], "type": kind}


def _settings(given: list[str] | None) -> dict[str, str]:
    pairs = [one.partition("=") for one in given or []]
    for name, equals, _ in pairs:
        if not equals or not name:
            raise UsageError(f"--config {name!r}: write it as NAME=VALUE")
    return {name.strip(): value.strip() for name, _, value in pairs}
