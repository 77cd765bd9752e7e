"""`sdm schema`: the schemas of topics, and whether a new one may follow them."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from mesh_events.errors import InvalidValueError, RefusedError
from mesh_events.schema import compatibility
from mesh_events.schema.compatibility import Level
from mesh_events.schema.definition import Kind, Reference, Version
from mesh_events.spelling import nearest
from projections.image import Image
from self_service.cli.framework.exits import NotFoundError, UsageError
from self_service.cli.framework.options import Shown, command
from self_service.cli.framework.output import Detail, Format, Listing, note, show
from self_service.cli.mesh.context import Mesh
from self_service.cli.schema import check as schema_check
from self_service.cli.schema import register
from self_service.cli.schema.app import Key, Name, Written, app
from self_service.cli.schema.check import Outcome
from self_service.cli.schema.references import referred
from self_service.cli.schema.registry import Subjects
from self_service.cli.schema.subjects import topic_of
from self_service.cli.topic.record_options import SchemaKind

__all__ = ["app", "register"]


@command(app, "list", "sdm schema list", "sdm schema list east. -o json")
def list_schemas(
    shown: Shown,
    prefix: Annotated[str, typer.Argument(help="Only subjects with this prefix.")] = "",
    every: Annotated[
        bool, typer.Option("--all", help="Also list subjects of the mesh itself.")
    ] = False,
) -> None:
    """List the subjects of the registry, with their latest versions."""
    mesh = Mesh()
    registry, image = Subjects(mesh), mesh.image()
    products: dict[str, list[str]] = {}
    for one in image.catalog.values():
        products.setdefault(one.topic, []).append(one.id)
    items = []
    for subject in registry.names():
        own = subject.endswith(("-value", "-key"))
        if not subject.startswith(prefix) or not (own or every):
            continue
        latest = registry.version(subject)
        if latest is None:
            continue
        items.append(
            {
                "subject": subject,
                "version": latest.number,
                "id": latest.schema_id,
                "type": latest.kind,
                "compatibility": registry.level(subject),
                "products": sorted(products.get(topic_of(subject), [])),
            }
        )
    columns = ("subject", "version", "id", "type", "compatibility", "products")
    show(
        Listing(columns, items, "no schemas: `sdm topic create --schema` registers one"),
        shown.output,
    )


@command(
    app,
    "describe",
    "sdm schema describe east.users",
    "sdm schema describe east.users --version 1 -o json",
)
def describe(
    shown: Shown,
    name: Name,
    number: Annotated[
        int | None, typer.Option("--version", min=1, metavar="N", help="Default: the latest.")
    ] = None,
    key: Key = False,
) -> None:
    """Describe a schema: its fields with types and docs, its versions and its readers.

    A shared schema is described by its own name: what refers to it, and what it refers to.
    """
    mesh = Mesh()
    registry = Subjects(mesh)
    subject = registry.subject(name, key=key)
    found = _version(registry, subject, number)
    fields = {
        "subject": subject,
        "version": found.number,
        "versions": registry.numbers(subject),
        "id": found.schema_id,
        "type": found.kind,
        "compatibility": registry.level(subject),
        "consumers": list(schema_check.consumers(mesh.image(), subject)),
        "references": [
            f"{one.name}={one.subject}:{one.version}" for one in found.schema.references
        ],
        "referred_to_by": registry.users(subject, found.number),
        # a table has its fields below
        **({} if shown.output is Format.TABLE else {"schema": _parsed(found)}),
    }
    parts = {
        "fields": Listing(("field", "type", "doc"), _fields(registry, subject, found), "no fields")
    }
    show(Detail(fields, parts), shown.output)


@command(
    app,
    "diff",
    "sdm schema diff east.users",
    "sdm schema diff east.users --from 1 --to 3",
    "sdm schema diff east.users users.avsc",
)
def diff(
    shown: Shown,
    name: Name,
    file: Annotated[Path | None, typer.Argument(help="Schema file to compare with.")] = None,
    start: Annotated[
        int | None,
        typer.Option("--from", min=1, metavar="N", help="Default: the previous version."),
    ] = None,
    end: Annotated[
        int | None, typer.Option("--to", min=1, metavar="N", help="Default: the latest.")
    ] = None,
    kind: SchemaKind = None,
    key: Key = False,
) -> None:
    """Show the changes between two versions, or between the latest version and a file."""
    registry = Subjects(Mesh())
    subject = registry.subject(name, key=key)
    if file is not None:
        if end is not None:
            raise UsageError("give a file or --to, not both")
        before, after = _version(registry, subject, start), registry.draft(subject, file, kind)
        schema_check.same_kind(subject, before, after)
        shown_as = str(file)
    else:
        later = _version(registry, subject, end)
        earlier = [one for one in registry.numbers(subject) if one < later.number]
        if start is None and not earlier:
            raise NotFoundError(f"{subject} has no version before {later.number}")
        before, after = _version(registry, subject, start or earlier[-1]), later.schema
        shown_as = f"version {later.number}"
    found = compatibility.changes(
        registry.fields(subject, before.schema), registry.fields(subject, after)
    )
    items = [
        {"field": one.path, "change": one.what, "before": one.before, "after": one.after}
        for one in found
    ]
    if items:
        note(f"{subject}: version {before.number} and {shown_as}")
    empty = f"{subject}: version {before.number} and {shown_as} have the same fields"
    show(Listing(("field", "change", "before", "after"), items, empty), shown.output)


@command(
    app,
    "check",
    "sdm schema check users.avsc --subject east.users",
    "sdm schema check schemas/*.avsc --junit schemas.xml",
    "sdm schema check east.users.avsc --level FULL_TRANSITIVE",
)
def check(
    shown: Shown,
    written: Written,
    files: Annotated[list[Path], typer.Argument(help="Schema files: .avsc, .json, .proto.")],
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject", help="Topic or subject; default: the file's name without extension."
        ),
    ] = None,
    level: Annotated[
        Level | None,
        typer.Option(
            "--level", help="Default: the subject's level; FULL if a product is published."
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help="Also write a JUnit XML report to this file."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if the registry does not know a subject.")
    ] = False,
) -> None:
    """Check whether schemas are compatible with the registered ones; registers nothing.

    For pull requests: exit code 0 if all are compatible, 3 if one breaks a reader, and with
    --strict 4 if a file's name matches no subject. Each break is shown with its field and the
    readers that it breaks. Avro is compared here; the registry checks JSON Schema and Protobuf, at
    the subject's own level.
    """
    if subject is not None and len(files) > 1:
        raise UsageError("--subject is for one file: name the others <topic>.avsc")
    mesh = Mesh()
    image, registry = mesh.image(), Subjects(mesh)
    others = referred(registry, written.references)
    outcomes = [
        _outcome(image, registry, path, subject or path.stem, written, level, others)
        for path in files
    ]
    if junit is not None:
        schema_check.write_junit(junit, outcomes, strict=strict)
    unknown = [one.subject for one in outcomes if not one.against and not one.fault]
    _note_first(registry, unknown)
    columns = ("file", "subject", "compatibility", "against", "outcome", "consumers")
    show(Listing(columns, [_told(one) for one in outcomes]), shown.output)
    broken = [one for one in outcomes if one.found]
    if shown.output is Format.TABLE:
        for one in broken:
            for number, each in one.found:
                note(f"{one.path}, version {number} of {one.subject}: {each}")
    _require_usable(outcomes)
    if broken:
        first, (number, each) = broken[0], broken[0].found[0]
        rest = sum(len(one.found) for one in broken) - 1
        more = f", and {rest} more" if rest else ""
        raise RefusedError(
            "incompatible_schema",
            f"{first.path} breaks {first.level} with version {number} of {first.subject}: {each}"
            f"{more}; give new fields a default, keep the old ones, or publish another product",
        )
    if strict and unknown:
        raise NotFoundError(
            f"--strict: nothing was compared for {', '.join(unknown)}: name the file after its "
            "topic, or give --subject"
        )


def _outcome(
    image: Image,
    registry: Subjects,
    path: Path,
    name: str,
    written: Written,
    level: Level | None,
    others: tuple[Reference, ...],
) -> Outcome:
    """What becomes of one file; one that cannot be compared does not keep others from it."""
    subject = name
    try:
        subject = registry.subject(name, key=written.key)
        return schema_check.checked(
            *(image, registry, path, subject), *(level, written.kind, others)
        )
    except RefusedError as error:
        if error.code not in schema_check.UNUSABLE:
            raise
        return schema_check.faulty(path, subject, error)


def _require_usable(outcomes: list[Outcome]) -> None:
    """Raise the refusal of the first file that could not be compared; tell the others."""
    faults = [one for one in outcomes if one.fault]
    for one in faults[1:]:
        note(one.fault)
    if faults:
        first = faults[0]
        raise (
            InvalidValueError(first.fault)
            if first.code == "invalid_value"
            else RefusedError(first.code, first.fault)
        )


def _note_first(registry: Subjects, subjects: list[str]) -> None:
    """Say of what nothing was compared with, which a misspelt name would do as well."""
    known = registry.names() if subjects else []
    for subject in subjects:
        near = nearest(subject, known)
        meant = f"; did you mean {near}? (--subject)" if near else ""
        note(f"{subject}: the registry has no version of it, so nothing was compared{meant}")


def _told(one: Outcome) -> dict[str, Any]:
    return {
        "file": str(one.path),
        "subject": one.subject,
        "compatibility": None if one.fault else one.level,
        "against": list(one.against),
        "outcome": _in_words(one),
        "consumers": list(one.consumers),
        "breaks": [
            {"version": number, "field": each.path, "reason": each.reason, "who": each.who}
            for number, each in one.found
        ],
    }


def _in_words(one: Outcome) -> str:
    if one.fault:
        return "is not usable"
    return "breaks" if one.found else "may follow" if one.against else "is the first"


def _version(registry: Subjects, subject: str, number: int | None) -> Version:
    found = registry.version(subject, "latest" if number is None else number)
    if found is not None:
        return found
    known = registry.numbers(subject)
    if known:
        told = ", ".join(map(str, known))
        raise NotFoundError(f"{subject} has no version {number}: there are {told}")
    raise NotFoundError(f"the registry has no subject {subject}: see `sdm schema list`")


def _parsed(version: Version) -> Any:
    return json.loads(version.text) if version.kind in (Kind.AVRO, Kind.JSON) else version.text


def _fields(registry: Subjects, subject: str, version: Version) -> list[dict[str, Any]]:
    """The fields of a schema with their paths; [] and a note where they cannot be read."""
    try:
        found = registry.fields(subject, version.schema)
    except InvalidValueError as error:
        note(str(error))
        return []
    # Protobuf's fields are read in their order
    if version.kind != Kind.PROTOBUF:
        found = sorted(found, key=lambda one: one.path)
    return [{"field": one.path, "type": one.type, "doc": one.doc} for one in found]
