"""Made-up records as bytes: which ones are wanted, and their encoding by registered schemas."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mesh_events.errors import InvalidValueError
from mesh_events.meta import milliseconds
from mesh_events.schema.definition import Definition, Kind
from mesh_events.schema.inlining import inlined
from self_service.cli.framework.exits import UsageError
from self_service.cli.framework.times import parse_time
from self_service.formats.schema import head
from self_service.generator.kinds import KINDS
from self_service.generator.recipe import Made, Recipe

if TYPE_CHECKING:
    from self_service.cli.mesh.context import Mesh

Encoded = tuple[bytes | None, bytes | None]
"""A record's key and value."""
Encode = Callable[[int], Encoded]
"""What makes the bytes of record n."""
_KINDS = "; ".join(f"{kind.name}: {kind.about}" for kind in KINDS.values())


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which records, how many, how fast."""

    kind: Annotated[str | None, typer.Option("--kind", help=f"{_KINDS}.")] = None
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema", help="Or an Avro schema, with arg.properties; default: the topic's schema."
        ),
    ] = None
    key_field: Annotated[
        str | None, typer.Option("--key-field", help="Without --kind: field to use as the key.")
    ] = None
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="Number of records; default: until Ctrl-C.")
    ] = None
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0.001, max=10_000_000, help="Records per second; default: 10."),
    ] = None
    fast: Annotated[
        bool, typer.Option("--fast", help="Write as fast as Kafka accepts records.")
    ] = False
    seconds: Annotated[
        float | None, typer.Option("--for", metavar="SECONDS", min=0.1, help="Duration in seconds.")
    ] = None
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same records.")] = 1
    users: Annotated[
        int, typer.Option("--users", min=1, max=10_000_000, help="Number of users.")
    ] = 100
    skew: Annotated[
        float,
        typer.Option(
            "--skew", min=0, max=10, help="Zipf exponent of the distribution; 0: uniform."
        ),
    ] = 0.0
    first: Annotated[
        int, typer.Option("--first", min=0, metavar="N", help="Number of the first record.")
    ] = 0
    start: Annotated[
        str | None,
        typer.Option("--start", metavar="TIME", help="Time of record 0; default: now."),
    ] = None

    @property
    def pace(self) -> float | None:
        """Records a second; None for as fast as they are taken."""
        return None if self.fast else self.rate or 10.0

    def require_sound(self) -> None:
        """Raise UsageError where options contradict each other."""
        if self.fast and self.rate is not None:
            raise UsageError("give --rate or --fast")
        if self.kind is not None and self.schema is not None:
            raise UsageError(f"give either --kind ({', '.join(KINDS)}) or --schema FILE")
        if self.kind is not None and self.key_field is not None:
            raise UsageError(f"--key-field is for --schema: {self.kind} has its own key")

    def recipe(self, mesh: "Mesh", topic: str) -> Recipe:
        """What makes the records; without a kind and a file, of the topic's own schema.

        Raises UsageError where the topic has none, InvalidValueError for a file that holds none.
        """
        now = datetime.now(UTC)
        schema = self._schema(mesh, f"{topic}-value") if self.kind is None else None
        whole = schema and inlined(schema.text, mesh.registry.imports(schema))
        return Recipe(
            kind=self.kind,
            schema_text=whole,
            registered_text=schema and schema.text,
            references=schema.references if schema else (),
            key_field=self.key_field,
            seed=self.seed,
            users=self.users,
            skew=self.skew,
            start=milliseconds(parse_time(self.start, now) if self.start else now),
            rate=self.rate or (1000.0 if self.fast else 10.0),
        )

    def _schema(self, mesh: "Mesh", subject: str) -> Definition:
        """The schema of the values: that of a file, else the latest of the subject."""
        from self_service.cli.schema import subjects

        if self.schema is not None:
            return subjects.draft(mesh, subject, self.schema, Kind.AVRO)
        latest = subjects.latest(mesh, subject)
        if latest is None:
            raise UsageError(
                f"{subject.removesuffix('-value')} has no schema: give --kind ({', '.join(KINDS)}) "
                "or --schema FILE"
            )
        if latest[1].kind != Kind.AVRO:
            raise InvalidValueError(
                f"{subject} is {latest[1].kind}: only Avro records can be generated"
            )
        return latest[1]


def encoder(mesh: "Mesh", topic: str, made: Made) -> Encode:
    """What makes the bytes of record n; the schemas of both sides are registered."""
    key = _encoder(mesh, f"{topic}-key", made.key, _own(made.key))
    value = _encoder(mesh, f"{topic}-value", made.value, made.registered or _own(made.value))

    def encode(number: int) -> Encoded:
        drawn = made.make(number)
        return key(drawn[0]), value(drawn[1])

    return encode


def _own(schema: Any) -> Definition:
    """A schema that refers to no other."""
    return Definition(Kind.AVRO, json.dumps(schema))


def _encoder(
    mesh: "Mesh", subject: str, schema: Any, registered: Definition
) -> Callable[[Any], bytes | None]:
    """Data as bytes by a schema (None: no bytes at all), which is registered as it is given."""
    import fastavro

    from mesh_events import avro
    from self_service.cli.schema import subjects

    if schema is None:
        return lambda _: None
    begin = head(subjects.register(mesh, subject, registered))
    parsed = avro.parsed(json.dumps(schema))

    def encode(datum: Any) -> bytes | None:
        if datum is None:
            return None
        out = io.BytesIO()
        out.write(begin)
        fastavro.schemaless_writer(out, parsed, datum)
        return out.getvalue()

    return encode
