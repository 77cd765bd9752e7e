"""The foundation of a mesh and the governor's decisions: only these change rights and existence."""

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from mesh_events.meta import MESH_DOMAIN, Event, Kind

PROOF = "Signature of the new key over mesh, owner and itself, see wire-format.md; base64url"


class SchemaIntroduced(Event):
    """Written by the root or the governor before a schema's first use on the log.

    With it the log needs no registry to be read. The first record of every log is this event
    describing itself; its schema is therefore the one that never changes.
    """

    kind: ClassVar[Kind] = Kind.FOUNDATION
    schema_id: int = Field(description="Id in the registry, as it stands in the wire format")
    name: str = Field(description="Full name of the Avro record")
    fingerprint: str = Field(description="SHA-256 of the schema's text, hex")
    schema_text: str = Field(description="The Avro schema as JSON text")

    @property
    def key(self) -> str:
        """`schema/mesh/<id>`."""
        return f"schema/{MESH_DOMAIN}/{self.schema_id}"


class MeshFounded(Event):
    """Written once by the root: names the keys under which the mesh is run."""

    kind: ClassVar[Kind] = Kind.FOUNDATION
    mesh: str = Field(description="Name of the mesh")
    governance_cluster: str = Field(description="Name of the cluster that holds this log")
    operator_key: str = Field(description="Registers clusters and domains; base64url Ed25519")
    governor_key: str = Field(description="Signs decisions; base64url Ed25519")
    controller_key: str = Field(description="Signs checks and facts; base64url Ed25519")

    @property
    def key(self) -> str:
        """`mesh/mesh/<mesh>`."""
        return f"mesh/{MESH_DOMAIN}/{self.mesh}"


class MeshRole(StrEnum):
    """For which part of the mesh a key speaks.

    UNKNOWN is what an older reader sees of a newer value: it gives the key to nobody.
    """

    UNKNOWN = "UNKNOWN"
    OPERATOR = "OPERATOR"
    GOVERNOR = "GOVERNOR"
    CONTROLLER = "CONTROLLER"


class MeshKeyIntroduced(Event):
    """Written by the root: another key for a part of the mesh, beside those that it has.

    It counts from this record on and needs no decision: the governor's own key may be the one that
    nobody can trust any more. A key that the log has known before never comes back.
    """

    kind: ClassVar[Kind] = Kind.FOUNDATION
    role: MeshRole = Field(description="OPERATOR, GOVERNOR or CONTROLLER")
    public_key: str = Field(description="The new public key; base64url Ed25519")
    proof: str = Field(description=PROOF)

    @property
    def key(self) -> str:
        """`key/mesh/<public_key>`."""
        return f"key/{MESH_DOMAIN}/{self.public_key}"


class MeshKeyRevoked(Event):
    """Written by the root: from this record on nothing counts that the key signs, for ever."""

    kind: ClassVar[Kind] = Kind.FOUNDATION
    public_key: str = Field(description="The key, of a part of the mesh or of a domain")
    reason: str = Field(description="Why, for the audit")

    @property
    def key(self) -> str:
        """`key/mesh/<public_key>`."""
        return f"key/{MESH_DOMAIN}/{self.public_key}"


UNDECIDED_PER_DOMAIN = 10_000
"""Intents of one domain that may wait for their decision, unless a governor's start says other."""
IDS_PER_DOMAIN = 100_000
"""Ids of one domain's intents that are remembered, unless a governor's start says other."""
APPLICATIONS_PER_DOMAIN = 1000
PRODUCTS_PER_DOMAIN = 1000
KEYS_PER_DOMAIN = 50
REQUESTS_PER_DOMAIN = 10_000
STATEMENTS_PER_DOMAIN = 200
CONNECTORS_PER_DOMAIN = 200
LINKS_PER_DOMAIN = 1000
"""What a domain may have of each kind, unless a governor's start says other."""


class GovernorStarted(Event):
    """Appended by a governor before it decides anything; this record's offset is its epoch.

    It counts only if `previous_epoch` is the latest epoch on the log before it: a copy, which
    anybody can append, has no effect, nor has a start beside another one. If it is null it counts
    unless a record with the same `meta.id`, which is fresh for each start, stands before it.
    The bounds hold for the records behind this one, until the next start. Of each kind of thing ten
    times as many are kept, those that have ended or were changed among them.
    """

    kind: ClassVar[Kind] = Kind.DECISION
    version: str = Field(description="Version of the governor's software")
    undecided_per_domain: int = Field(
        default=UNDECIDED_PER_DOMAIN,
        description="Undecided intents of a domain above which its next one is set aside",
    )
    ids_per_domain: int = Field(
        default=IDS_PER_DOMAIN,
        description="Remembered ids of a domain's intents above which its next one is set aside",
    )
    applications_per_domain: int = Field(
        default=APPLICATIONS_PER_DOMAIN,
        description="Applications of a domain above which it registers no other",
    )
    products_per_domain: int = Field(
        default=PRODUCTS_PER_DOMAIN,
        description="Products of a domain above which it publishes no other",
    )
    keys_per_domain: int = Field(
        default=KEYS_PER_DOMAIN,
        description="Keys of a domain that are not revoked above which it registers no other",
    )
    requests_per_domain: int = Field(
        default=REQUESTS_PER_DOMAIN,
        description="Open requests and grants of a domain's applications above which it requests "
        "no other access",
    )
    statements_per_domain: int = Field(
        default=STATEMENTS_PER_DOMAIN,
        description="Statements of a domain above which it adds no other",
    )
    connectors_per_domain: int = Field(
        default=CONNECTORS_PER_DOMAIN,
        description="Connectors of a domain above which it adds no other",
    )
    links_per_domain: int = Field(
        default=LINKS_PER_DOMAIN,
        description="Links of a domain's products above which it grants nothing that needs another",
    )
    previous_epoch: int | None = Field(
        default=None,
        description="Offset of the latest GovernorStarted that counted before this one, -1 before "
        "the first",
    )

    @property
    def key(self) -> str:
        """`governor/mesh/governor`."""
        return f"governor/{MESH_DOMAIN}/governor"


class Decision(Event):
    """What the governor made of the record at `offset`, under its `epoch`.

    It counts only if the epoch is the latest started one, `follows` names the decision that counted
    last in this epoch, and the record is still undecided. A governor appends several decisions at
    once; where one of them is lost, those behind it have no effect either.
    """

    kind: ClassVar[Kind] = Kind.DECISION
    offset: int = Field(description="Offset of the decided record on this log")
    epoch: int = Field(description="Offset of the GovernorStarted record of the deciding governor")
    basis: int = Field(
        description="Offset of the last record that the judgement saw, besides the decisions of "
        "the same epoch up to `follows`"
    )
    clock: datetime = Field(
        description="Mesh time of the decision, UTC: it never goes back, and does not follow a "
        "broker whose clock is wrong"
    )
    follows: str = Field(
        description="`meta.id` of the decision before this one in its epoch; that of the "
        "GovernorStarted for the first"
    )
    worker_skew: int = Field(
        default=0,
        description="How far the clock of the governor's machine was ahead of `clock`, ms; "
        "below 0: behind",
    )

    @property
    def key(self) -> str:
        """`decision/mesh/<offset>`."""
        return f"decision/{MESH_DOMAIN}/{self.offset}"

    def decides(self, offset: int) -> bool:
        """Whether this is the decision on the record at an offset."""
        return offset == self.offset


class IntentAccepted(Decision):
    """The intent takes effect; this record's offset is the generation of what it made."""

    intent: str = Field(description="Id of the accepted intent")


class IntentRejected(Decision):
    """The intent was understood and refused; it has no effect."""

    intent: str = Field(description="Id of the refused intent")
    code: str = Field(description="Stable code, see docs/reference/codes.md")
    reason: str = Field(description="The refusal in a sentence that names the next step")
    waited: int = Field(
        default=0, description="How long the governor had waited for the checks of the intent, ms"
    )


class IntentQuarantined(Decision):
    """The record could not be understood or trusted; set aside for ever, also by later versions."""

    code: str = Field(description="Stable code, see docs/reference/codes.md")
    reason: str = Field(description="What is wrong with the record")


class RecordsSetAside(Decision):
    """All records of a range but the exceptions have no effect, for ever, also for later versions.

    One decision for many records that could not be understood or trusted, or that were above their
    domain's bound. The exceptions are the records between them that something else holds for:
    intents that are judged by themselves, facts and decisions.
    """

    offset: int = Field(description="First offset of the range")
    last: int = Field(description="Last offset of the range, at most `basis`")
    exceptions: list[int] = Field(
        description="Offsets in the range that are not set aside, ascending; at most 256"
    )
    counts: dict[str, int] = Field(
        description="Code, see docs/reference/codes.md -> how many records of the range have it"
    )

    def decides(self, offset: int) -> bool:
        """Whether the record at an offset is set aside."""
        in_range = self.offset <= offset <= min(self.last, self.basis)
        return in_range and offset not in self.exceptions

    def among(self, offsets: Collection[int]) -> list[int]:
        """Which of the offsets are set aside: in time of the range or of them, whichever is less.

        Args:
            offsets: a set, or the keys of a dict.
        """
        first, behind = self.offset, min(self.last, self.basis) + 1
        # the length of a range has a bound, and what a record names has none
        found = range(first, behind) if behind - first < len(offsets) else offsets
        return [one for one in found if one in offsets and self.decides(one)]

    @property
    def code(self) -> str:
        """The one code of all records of the range, `records_set_aside` if there are several."""
        return next(iter(self.counts)) if len(self.counts) == 1 else SEVERAL_CODES

    @property
    def reason(self) -> str:
        """How many records have which code, in a sentence."""
        counts = ", ".join(f"{count} {code}" for code, count in sorted(self.counts.items()))
        return (
            f"set aside with the unusable records from offset {self.offset} to {self.last}: "
            f"{counts}"
        )


SEVERAL_CODES = "records_set_aside"
"""Code for a record of a range whose records have several."""
DECISIONS: tuple[type[Event], ...] = (
    GovernorStarted,
    IntentAccepted,
    IntentRejected,
    IntentQuarantined,
    RecordsSetAside,
)
FOUNDATION: tuple[type[Event], ...] = (
    SchemaIntroduced,
    MeshFounded,
    MeshKeyIntroduced,
    MeshKeyRevoked,
)
