"""Facts: what controllers found or did. A fact changes a status, never a right.

Every fact about a desired thing names the `generation` that it satisfies; one that names an
older generation than the log's latest is a no-op.
"""

from enum import Enum, StrEnum
from typing import Any, ClassVar, Self

from pydantic import Field

from mesh_events.meta import MESH_DOMAIN, Event, Kind, shortened


class Fact(Event):
    """A report by a controller, signed with the controller's key."""

    kind: ClassVar[Kind] = Kind.FACT

    def shortened(self) -> Self:
        """The fact with each of its texts as the log can hold it, and cut.

        Controllers quote schemas, servers and databases.
        """
        return self.model_copy(update={name: _cut(value) for name, value in self})


def _cut(value: Any) -> Any:
    match value:
        case Enum():  # one of the mesh's own words, and a `str` too
            return value
        case str():
            return shortened(value)
        case list():
            return [_cut(one) for one in value]
        case dict():
            return {_cut(name): _cut(one) for name, one in value.items()}
    return value


class Check(Fact):
    """The outcome of one check that an intent waits for."""

    offset: int = Field(description="Offset of the waiting intent")
    check: str = Field(description="Name of the check, see docs/reference/codes.md")
    evidence: dict[str, str] = Field(
        default_factory=dict, description="What was looked at and what was found"
    )

    @property
    def key(self) -> str:
        """`check/mesh/<offset of the intent>`."""
        return f"check/{MESH_DOMAIN}/{self.offset}"


class CheckPassed(Check):
    """The world is as the intent needs it."""


class CheckFailed(Check):
    """The world is not as the intent needs it; the intent will be refused with this code."""

    code: str = Field(description="Stable code of the refusal")
    reason: str = Field(description="The refusal in a sentence")


class CredentialsIssued(Fact):
    """A principal can log in to a cluster; the secret lies where `reference` points."""

    principal: str = Field(description="Kafka user name")
    cluster: str = Field(description="Cluster where it can log in")
    generation: int = Field(description="Generation of the credentials' desired state")
    reference: str = Field(description="Where the password lies, file:PATH; never the password")

    @property
    def key(self) -> str:
        """`credentials/<cluster>/<principal>`."""
        return f"credentials/{self.cluster}/{self.principal}"


class RightsFact(Fact):
    """What all facts about access rights name."""

    subject: str = Field(
        description="Whose rights: a request id, or domain/<name>, application/<id>"
    )
    cluster: str = Field(description="Cluster where the rights were changed")
    generation: int = Field(description="Generation of the subject that this satisfies")
    bindings: list[str] = Field(description="The ACL bindings, one readable line each")

    @property
    def key(self) -> str:
        """`rights/<cluster>/<subject>`."""
        return f"rights/{self.cluster}/{self.subject}"


class AclApplied(RightsFact):
    """The bindings exist on the cluster and were seen there."""


class AclRemoved(RightsFact):
    """The bindings are gone from the cluster and were seen gone."""


class DriftKind(StrEnum):
    """How a cluster differs from the log; UNKNOWN is what an older reader sees.

    RIGHT_MISSING: the log says that it was applied, and it is not there. RIGHT_RETURNED: the log
    says that it is gone, and it is there. UNGRANTED_RIGHT: one of the mesh's own principals may do
    what no grant says. FOREIGN_RIGHT: a stranger may read or change what is the mesh's.
    FOREIGN_DENIAL: somebody's denial shuts out who is entitled. TOPIC_MISSING: a product's topic
    does not exist.
    """

    UNKNOWN = "UNKNOWN"
    RIGHT_MISSING = "RIGHT_MISSING"
    RIGHT_RETURNED = "RIGHT_RETURNED"
    UNGRANTED_RIGHT = "UNGRANTED_RIGHT"
    FOREIGN_RIGHT = "FOREIGN_RIGHT"
    FOREIGN_DENIAL = "FOREIGN_DENIAL"
    TOPIC_MISSING = "TOPIC_MISSING"


class Remedy(StrEnum):
    """What was done about a drift; UNKNOWN is what an older reader sees.

    REPAIRED: the cluster was made as the log says, and seen so. LEFT: nothing, by policy. ENDED: it
    was left, and is not there any more, by somebody else's hand.
    """

    UNKNOWN = "UNKNOWN"
    REPAIRED = "REPAIRED"
    LEFT = "LEFT"
    ENDED = "ENDED"


class DriftFound(RightsFact):
    """A cluster's rights or topics are not as the log says; what was found and what was done."""

    subject: str = Field(
        description="Whose rights: a request id, domain/<name>, application/<id>, or "
        "principal/<name> for rights that no subject has; product/<id> for a product's topic"
    )
    cluster: str = Field(description="Cluster where it was found")
    generation: int = Field(description="Generation of the subject, -1 for principal/<name>")
    bindings: list[str] = Field(description="The ACL bindings that differ, one readable line each")
    drift: DriftKind = Field(description="How they differ")
    remedy: Remedy = Field(description="What was done")
    principal: str = Field(
        description="Kafka user that the bindings are for, * for everybody, empty for a topic"
    )
    topics: list[str] = Field(description="Topics of the mesh that it touches, some of them")
    basis: int = Field(
        default=-1,
        description="Offset up to which the controller had read the log when it looked; a fact "
        "from before the last one on the same finding changes nothing",
    )
    untold: int = Field(
        default=0,
        description="Repairs of the same kind before this one that were too many to be told",
    )


class LinkFact(Fact):
    """What all facts about a link name."""

    link: str = Field(description="Link id, <product>@<cluster>")
    generation: int = Field(description="Generation of the link that this satisfies")

    @property
    def key(self) -> str:
        """`link/<product's domain>/<name>@<cluster>`."""
        return f"link/{self.link.replace('.', '/', 1)}"


class LinkActivated(LinkFact):
    """The copy runs: records flow from the source to the destination."""

    incarnation: int = Field(description="Counts the starts of this link, from 1")
    principal: str = Field(description="Principal that writes the destination in this incarnation")
    run: str = Field(description="OpenLineage run id of this incarnation")
    source_topic: str = Field(description="Topic that is read")
    source_topic_id: str = Field(description="Kafka's id of the source topic")
    destination_topic: str = Field(description="Topic that is written")
    destination_topic_id: str = Field(description="Kafka's id of the destination topic")
    positions: dict[str, int] = Field(description="Partition -> first source offset to be copied")
    source_ends: dict[str, int] = Field(
        default_factory=dict,
        description="Partition -> source offset behind the last record that the source had at the "
        "start: the copy is filled once it has come there; empty: not known",
    )


class LinkAdvanced(LinkFact):
    """A floor of the link's progress: everything before `positions` is in the destination."""

    positions: dict[str, int] = Field(description="Partition -> next source offset to be copied")
    incarnation: int = Field(default=0, description="The start that `source_ends` are of")
    source_ends: dict[str, int] = Field(
        default_factory=dict,
        description="Takes the place of those of the start, where they were not known or their "
        "records are gone from the source before they were copied; empty: they stay",
    )


class LinkStopped(LinkFact):
    """The copy stands still as desired (paused or deleted); the fence is closed."""

    positions: dict[str, int] = Field(description="Partition -> next source offset to be copied")


class LinkFailed(LinkFact):
    """The copy cannot run; `retriable` tells whether the controller will try again by itself."""

    code: str = Field(description="Stable code of the failure")
    reason: str = Field(description="What happened and the next step")
    retriable: bool = Field(description="The controller tries again by itself")


class CopyPurged(LinkFact):
    """The copy of a deleted link is deleted."""

    topic: str = Field(description="Deleted topic")
    topic_id: str = Field(description="Kafka's id of the deleted topic")
    unexpected_readers: list[str] = Field(
        default_factory=list,
        description="Principals that an ACL let read it until then without a grant, at most 20",
    )


class CopyRetained(LinkFact):
    """The copy of a deleted link stays, frozen, as the grant said."""

    topic: str = Field(description="Topic that stays")
    topic_id: str = Field(description="Kafka's id of the topic")


class EffectFailed(Fact):
    """A controller could not make the world match; it tries again by itself."""

    subject: str = Field(description="What the effect was about: request id, link id, principal")
    effect: str = Field(description="Which effect, such as apply_acl or issue_credentials")
    cluster: str = Field(description="Cluster where it failed")
    generation: int = Field(description="Generation that is not satisfied yet")
    reason: str = Field(description="The error, in a sentence")
    code: str = Field(default="", description="Stable code of the error, empty if unknown")

    @property
    def key(self) -> str:
        """`effect/<cluster>/<subject>`."""
        return f"effect/{self.cluster}/{self.subject}"


FACTS: tuple[type[Fact], ...] = (
    CheckPassed,
    CheckFailed,
    CredentialsIssued,
    AclApplied,
    AclRemoved,
    DriftFound,
    LinkActivated,
    LinkAdvanced,
    LinkStopped,
    LinkFailed,
    CopyPurged,
    CopyRetained,
    EffectFailed,
)
