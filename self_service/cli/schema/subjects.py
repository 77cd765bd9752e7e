"""Schemas of topics in the registry: `<topic>-key` and `<topic>-value`."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mesh_events.errors import InfrastructureError, InvalidValueError, RefusedError
from mesh_events.schema.definition import Definition, Kind, Reference
from mesh_events.schema.inlining import inlined
from mesh_events.schema.patterns import require_usable
from self_service.cli.framework.given_files import read_text

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

    from mesh_events.schema.registry import Registry
    from self_service.cli.mesh.context import Mesh
    from self_service.formats.schema import Schema

_SIDES = ("-key", "-value")
_SUFFIXES = {".json": Kind.JSON, ".proto": Kind.PROTOBUF}
_NAMES = {Kind.AVRO: "Avro schema", Kind.JSON: "JSON Schema", Kind.PROTOBUF: "Protobuf schema"}
_IMPORT = re.compile(
    r"""(?:^|;)[ \t]*import\s++(?:public\s++|weak\s++)?["']([^"']+)["']""", re.MULTILINE
)


def subject_of(name: str, *, key: bool = False) -> str:
    """A subject by its own name or that of its topic or product."""
    return name if name.endswith(_SIDES) else f"{name}-{'key' if key else 'value'}"


def topic_of(subject: str) -> str:
    """The topic whose keys or values a subject describes; a shared schema's own name."""
    return next((subject.removesuffix(one) for one in _SIDES if subject.endswith(one)), subject)


def kind_of(path: Path, kind: Kind | None = None) -> Kind:
    """The language of the schema in a file: as said, else by the name's end, else Avro."""
    return kind or _SUFFIXES.get(path.suffix.lower(), Kind.AVRO)


def read_schema(
    path: Path,
    kind: Kind | None = None,
    registry: "Registry | None" = None,
    before: Definition | None = None,
    references: Iterable[Reference] = (),
) -> Definition:
    """The schema in a file.

    Args:
        path: the file.
        kind: its language; None for what its name says.
        registry: where schemas that it refers to are read.
        before: the schema that it follows: what both call alike is the same.
        references: what else it refers to, or what it shall refer to from now on.

    Raises:
        InvalidValueError: what is wrong with the file, and where.
    """
    kind = kind_of(path, kind)
    try:
        text = read_text(path)
    except OSError as error:
        raise InvalidValueError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidValueError(f"{path} is not a valid {_NAMES[kind]}: it is not UTF-8") from error
    # what the file does not name any more is no reference of it
    known = before.references if before is not None and before.kind == kind else ()
    kept = {one.name: one for one in known if _called(one.name, kind) in text}
    named = {**kept, **{one.name: one for one in references}}
    found = Definition(kind, text, tuple(named.values()))
    imports = registry.imports(found) if registry is not None and found.references else {}
    require_schema(found, imports, str(path))
    if kind == Kind.AVRO:
        require_usable(inlined(text, imports), str(path))
    return found


def _called(name: str, kind: Kind) -> str:
    """What a text has to hold that refers to a name: in Avro, a namespace may be left out."""
    return name.rpartition(".")[2] if kind == Kind.AVRO else name


def require_schema(found: Definition, imports: Mapping[str, str], name: str) -> "Schema":
    """The schema ready for use; raises InvalidValueError that names what is wrong."""
    from self_service.formats.schema import SchemaError, UndefinedError, schema_from

    try:
        return schema_from(found.kind, found.text, imports)
    except UndefinedError as error:
        raise InvalidValueError(
            f"{name} is not a complete Avro schema: {error}; if another schema defines it, name it "
            "with `sdm schema register --reference NAME=SUBJECT`"
        ) from error
    except SchemaError as error:
        if isinstance(error.__cause__, RefusedError):
            raise RefusedError(error.__cause__.code, f"{name}: {error}") from error
        kind = _NAMES.get(Kind(found.kind), found.kind) if found.kind in list(Kind) else found.kind
        raise InvalidValueError(f"{name} is not a valid {kind}: {error}{_hint(found)}") from error


def _hint(found: Definition) -> str:
    """What to do about a file whose name misleads, or that needs others."""
    if found.kind == Kind.JSON and '"record"' in found.text:
        return "; an Avro schema is a file .avsc, or needs --type AVRO"
    known = {one.name for one in found.references}
    missing = [
        one
        for one in (_IMPORT.findall(found.text) if found.kind == Kind.PROTOBUF else ())
        if one not in known and not one.startswith(("google/", "confluent/"))
    ]
    if missing:
        return (
            f"; {', '.join(missing)} is not among the references of the subject's latest version: "
            "name its subject with `sdm schema register --reference NAME=SUBJECT`"
        )
    return ""


def draft(mesh: "Mesh", subject: str, path: Path, kind: Kind | None = None) -> Definition:
    """As `read_schema`, for the next version of a subject."""
    before = latest(mesh, subject)
    return read_schema(path, kind, mesh.registry, before[1] if before else None)


def register(mesh: "Mesh", subject: str, schema: Definition) -> int:
    """Register a schema under a subject; the same schema again gives the same id.

    Raises RefusedError where it is incompatible with the subject's earlier ones.
    """
    from confluent_kafka.schema_registry import Schema, SchemaReference
    from confluent_kafka.schema_registry.error import SchemaRegistryError

    doing = f"registering {subject} at {mesh.profile.registry_url}"
    references = [SchemaReference(one.name, one.subject, one.version) for one in schema.references]
    try:
        return int(
            _writer(mesh).register_schema(subject, Schema(schema.text, schema.kind, references))
        )
    except SchemaRegistryError as error:
        if error.http_status_code == 409:
            raise RefusedError(
                "incompatible_schema",
                f"the schema is incompatible with the earlier ones of {subject}: "
                f"see `sdm schema check`; {_advice(schema.kind)}, choose another topic, or "
                "register a new major version with `sdm schema register --major`",
            ) from error
        if error.http_status_code == 422:
            raise InvalidValueError(
                f"the registry at {mesh.profile.registry_url} refuses the schema of {subject}: "
                f"{error.error_message}"
            ) from error
        raise InfrastructureError(f"{doing}: {error}", retriable=False) from error
    except Exception as error:
        raise InfrastructureError(f"{doing}: {error}", retriable=True) from error


def remove(mesh: "Mesh", subject: str) -> None:
    """Remove a subject that nobody needs any more; InfrastructureError if that is not possible."""
    try:
        _writer(mesh).delete_subject(subject)
    except Exception as error:
        raise InfrastructureError(f"removing {subject}: {error}", retriable=True) from error


def _advice(kind: str) -> str:
    if kind == Kind.PROTOBUF:
        return "add fields with new numbers, and keep the numbers of the old ones"
    return "add fields with defaults" if kind == Kind.AVRO else "add fields that are not required"


def _writer(mesh: "Mesh") -> "SchemaRegistryClient":
    """A client that may register; the login is the local platform's."""
    from mesh_events.references import resolve
    from mesh_events.schema.registry import registry_client

    ends = mesh.endpoints
    password = resolve(ends.registry_password)
    return registry_client(mesh.profile.registry_url, ends.registry_user, password)


def latest(mesh: "Mesh", subject: str) -> tuple[int, Definition] | None:
    """(id, schema) of a subject's latest version, None if there is none."""
    found = mesh.registry.latest(subject)
    return None if found is None else (found[0], mesh.registry.definition(found[0]))


def usable(mesh: "Mesh", subject: str, schema: Definition) -> "Schema":
    """A registered schema with all that it refers to; raises InvalidValueError if it is none."""
    return require_schema(schema, mesh.registry.imports(schema), f"the schema of {subject}")
