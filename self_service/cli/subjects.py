"""Schemas of topics in the registry: `<topic>-key` and `<topic>-value`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mesh_events.errors import InfrastructureError, InvalidValueError, RefusedError

if TYPE_CHECKING:
    from self_service.cli.context import Mesh


def read_schema(path: Path) -> str:
    """The Avro schema in a file, as text; raises InvalidValueError that names what is wrong."""
    import fastavro

    try:
        text = path.read_text("utf-8")
        fastavro.parse_schema(json.loads(text), named_schemas={})
    except OSError as error:
        raise InvalidValueError(f"{path}: {error.strerror}") from error
    except Exception as error:  # fastavro raises many kinds on what is no schema
        reason = " ".join(str(error).split())
        raise InvalidValueError(f"{path} is no Avro schema: {reason}") from error
    return text


def register(mesh: "Mesh", subject: str, text: str) -> int:
    """Register a schema under a subject; the same schema again gives the same id.

    Raises RefusedError where it is incompatible with the subject's earlier ones.
    """
    from confluent_kafka.schema_registry import Schema
    from confluent_kafka.schema_registry.error import SchemaRegistryError

    doing = f"registering {subject} at {mesh.profile.registry_url}"
    try:
        return int(_writer(mesh).register_schema(subject, Schema(text, "AVRO")))
    except SchemaRegistryError as error:
        if error.http_status_code == 409:
            raise RefusedError(
                "incompatible_schema",
                f"the schema is incompatible with the earlier ones of {subject}: "
                "add fields with defaults, or choose another topic",
            ) from error
        raise InfrastructureError(f"{doing}: {error}", retriable=False) from error
    except Exception as error:
        raise InfrastructureError(f"{doing}: {error}", retriable=True) from error


def _writer(mesh: "Mesh") -> Any:
    """A client that may register; the login is the local platform's."""
    from confluent_kafka.schema_registry import SchemaRegistryClient

    from mesh_events.references import resolve

    ends = mesh.endpoints
    login = f"{ends.registry_user}:{resolve(ends.registry_password)}"
    config = {"url": mesh.profile.registry_url, "basic.auth.user.info": login, "timeout": 10}
    return SchemaRegistryClient(config)


def latest(mesh: "Mesh", subject: str) -> tuple[int, str] | None:
    """(id, text) of a subject's latest schema, None if there is none."""
    found = mesh.registry.latest(subject)
    return None if found is None else (found[0], mesh.registry.schema_text(found[0]))


def encoded(schema_id: int, text: str, datum: Any) -> bytes:
    """A datum in the Confluent wire format; raises InvalidValueError where it does not fit."""
    import io

    import fastavro

    from mesh_events import avro
    from self_service.cli.logical import typed

    out = io.BytesIO()
    out.write(b"\x00" + schema_id.to_bytes(4, "big"))
    datum = typed(json.loads(text), datum)
    try:
        # the writer alone would cut a number that is too great for its type
        fastavro.validate(datum, avro.parsed(text))
        fastavro.schemaless_writer(out, avro.parsed(text), datum, strict_allow_default=True)
    except fastavro.validation.ValidationError as error:
        reason = "; ".join(map(str, error.errors))
        raise InvalidValueError(f"the value does not fit the schema: {reason}") from error
    except Exception as error:  # fastavro raises many kinds on what does not fit
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InvalidValueError(f"the value does not fit the schema: {reason}") from error
    return out.getvalue()


def decoded(text: str, value: bytes) -> Any:
    """The datum behind the five bytes of the wire format; raises ValueError for other bytes."""
    import io

    import fastavro

    from mesh_events import avro

    body = io.BytesIO(value)
    body.seek(5)
    try:
        found: Any = fastavro.schemaless_reader(body, avro.parsed(text), None)
    except Exception as error:  # fastavro raises many kinds on bytes that are not Avro
        raise ValueError(str(error)) from error
    if body.tell() != len(value):
        raise ValueError("bytes follow the Avro body")
    return found
