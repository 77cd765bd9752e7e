"""Reading the records of a proof: what one says, and what its signer may do. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from mesh_events import avro
from mesh_events.codec import decode, has_valid_signature, schema_id_of
from mesh_events.decisions import SchemaIntroduced
from mesh_events.errors import UnusableRecordError
from mesh_events.meta import Event
from mesh_events.record import SIGNER, Record
from projections.identity import Role
from self_service.cli.framework.exits import FindingError
from self_service.cli.proof.file import Legible, Placed


@dataclass(frozen=True, slots=True)
class Read:
    """A record as its schema lets it be read; `signer` and `introducer` as of `Proven`."""

    event: Event | None
    fault: str
    signer: str | None
    introducer: str | None


@dataclass(frozen=True, slots=True)
class Roles:
    """The mesh's root, and key -> (what it may do, number of the record that says so)."""

    root: str
    named: Mapping[str, tuple[Role, int]]

    def has(self, key: str | None, placed: Placed, *roles: Role) -> bool:
        """Whether a key had one of the roles when a record was appended."""
        role, since = self.named.get(key or "", (None, 0))
        return role in roles and since <= placed.index


def read(one: Legible, roles: Roles) -> Read:
    """What a record says, by the schema that the log itself introduced.

    Raises FindingError before a byte of it is read where a stranger introduced that: by such a
    schema the bytes may say anything, and a few of them keep a reader busy for ever.
    """
    schemas, introducer = {-1: ""}, None
    if one.schema is not None:
        event = introduction_of(one.schema.record)
        introducer = signer_of(one.schema.record, roles.root)
        if not roles.has(introducer, one.schema, Role.ROOT, Role.GOVERNOR):
            raise FindingError(
                f"the record at offset {one.schema.record.offset}, named as introducing the schema "
                f"of the one at {one.offset}, is not signed by the root or a governor that the "
                "proof names"
            )
        schemas[event.schema_id] = event.schema_text
    record = one.placed.record
    entry = decode(record, schemas, roles.root, verify=False)
    fault = entry.fault.reason if entry.fault else ""
    return Read(entry.event, fault, signer_of(record, roles.root), introducer)


def require_governor(found: Read, one: Legible, roles: Roles) -> None:
    """Raises FindingError for a record that no governor of the proof has signed."""
    if not roles.has(found.signer, one.placed, Role.GOVERNOR):
        raise FindingError(
            f"the record at offset {one.offset} is not signed by a governor that the proof names"
        )


def introduction_of(record: Record) -> SchemaIntroduced:
    """The event of the record that is said to introduce the schema; its own schema is known."""
    fault = f"the record at offset {record.offset} introduces no schema"
    try:
        own = {schema_id_of(record.value or b""): avro.text_of(SchemaIntroduced.type_name())}
    except UnusableRecordError as error:
        raise FindingError(f"{fault}: {error.reason}") from error
    event = decode(record, own, None, verify=False).event
    if not isinstance(event, SchemaIntroduced):
        raise FindingError(fault)
    return event


def signer_of(record: Record, root: str | None) -> str | None:
    """Who signed a record in the mesh of a root; None for the root of the signer itself."""
    named = record.headers.get(SIGNER)
    return named.decode("ascii") if named and has_valid_signature(record, root) else None
