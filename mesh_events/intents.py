"""Intents: what domains claim. The governor decides each of them, once.

Read from top to bottom: this is the language of the mesh. Values are checked when an intent is
*decided*, not when it is read, so that an old log stays readable under new rules.
"""

from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from mesh_events.decisions import PROOF
from mesh_events.meta import MESH_DOMAIN, Event, Kind


class Quality(StrEnum):
    """How far a product's data can be relied on; UNKNOWN is what an older reader sees."""

    UNKNOWN = "UNKNOWN"
    RAW = "RAW"
    STANDARD = "STANDARD"
    ENRICHED = "ENRICHED"


class OnRevoke(StrEnum):
    """What becomes of the copy in the consumer's cluster when the last grant ends.

    UNKNOWN is what an older reader sees of a newer value: it keeps the copy.
    """

    UNKNOWN = "UNKNOWN"
    PURGE = "PURGE"
    RETAIN = "RETAIN"


class Engine(StrEnum):
    """What copies the records of a link; UNKNOWN, of a newer mesh, is left alone."""

    UNKNOWN = "UNKNOWN"
    SPARK = "SPARK"
    MIRRORMAKER = "MIRRORMAKER"


class Intent(Event):
    """A claim by `meta.domain`, signed with one of its keys."""

    kind: ClassVar[Kind] = Kind.INTENT

    @property
    def ordering_key(self) -> str:
        """What it is about: a domain's intents on one thing are decided in the order of the log.

        By default the record's key.
        """
        return self.key


class ClusterRegistered(Intent):
    """Emitted by the operator when a Kafka cluster joins the mesh."""

    cluster: str = Field(description="Name of the cluster")
    bootstrap_servers: str = Field(description="host:port list that clients start from")
    admin_user: str = Field(description="Principal with which controllers administer the cluster")
    admin_password: str = Field(description="Reference to its password, env:NAME or file:PATH")
    registry_url: str | None = Field(
        default=None, description="Confluent API of the cluster's own schema registry, if any"
    )
    registry_user: str | None = Field(
        default=None, description="Who may write there under given ids"
    )
    registry_password: str | None = Field(
        default=None, description="Reference to the password, env:NAME or file:PATH"
    )

    @property
    def key(self) -> str:
        """`cluster/mesh/<cluster>`."""
        return f"cluster/{MESH_DOMAIN}/{self.cluster}"


class DomainIntent(Intent):
    """What all intents about a domain as such name."""

    domain: str = Field(description="The domain")

    @property
    def key(self) -> str:
        """`domain/<domain>/<domain>`."""
        return f"domain/{self.domain}/{self.domain}"


class DomainRegistered(DomainIntent):
    """Emitted by the operator when a domain joins; brings the domain's first key."""

    domain: str = Field(description="Name of the domain, [a-z][a-z0-9-]*")
    description: str = Field(default="", description="What the domain is about")
    owner: str = Field(description="Id of the accountable owner, such as a team id")
    cluster: str = Field(
        description="Home cluster: where its topics live and its applications read"
    )
    public_key: str = Field(description="Ed25519 public key, base64url without padding")
    proof: str = Field(description=PROOF)


class KeyRegistered(Intent):
    """Emitted by a domain or the operator when another key may speak for the domain."""

    domain: str = Field(description="Domain that the key speaks for")
    public_key: str = Field(description="Ed25519 public key, base64url without padding")
    proof: str = Field(description=PROOF)

    @property
    def key(self) -> str:
        """`key/<domain>/<public key>`."""
        return f"key/{self.domain}/{self.public_key}"


class KeyRevoked(Intent):
    """Emitted by a domain or the operator when a key must no longer speak for the domain."""

    domain: str = Field(description="Domain that the key spoke for")
    public_key: str = Field(description="The revoked key, base64url without padding")
    reason: str = Field(description="Why, for the audit")

    @property
    def key(self) -> str:
        """`key/<domain>/<public key>`."""
        return f"key/{self.domain}/{self.public_key}"


class DomainFrozen(DomainIntent):
    """Emitted by the operator, or the domain itself, when nothing that a domain says may count.

    For a time: whatever of the domain is undecided then, or reaches the log before its end, is
    refused, whoever holds its key. What is in force stays in force. The domain `mesh` stands for
    all domains. A second freeze replaces the first.
    """

    domain: str = Field(description="The domain, or mesh for all of them")
    until: datetime = Field(
        description="End, by the mesh's clock; at most a year ahead. Not used where `duration_ms` "
        "is given"
    )
    reason: str = Field(description="Why, for those who are refused and the audit")
    duration_ms: int | None = Field(
        default=None,
        description="It lasts so long from its acceptance on, by the mesh's clock, whatever the "
        "emitter's clock shows; while clocks disagree, by the one that is ahead; a year at most",
    )


class DomainThawed(DomainIntent):
    """Emitted by the operator when a freeze ends before its time."""

    domain: str = Field(description="The domain, or mesh for all of them")
    reason: str = Field(description="Why, for the audit")


class DomainQuarantined(DomainIntent):
    """Emitted by the operator when a domain must be cut off until somebody has looked at it.

    As a freeze without an end; besides, every right of the domain and its applications is
    withdrawn on every cluster. Grants stay, and are applied again at the release. What others read
    of the domain goes on.
    """

    reason: str = Field(description="Why, for those who are refused and the audit")


class DomainReleased(DomainIntent):
    """Emitted by the operator when a domain's quarantine ends: its rights come back."""

    reason: str = Field(description="Why, for the audit")


class ApplicationRegistered(Intent):
    """Emitted by a domain when it has a program that will read or write products."""

    application: str = Field(
        description="Application id, <domain>.<name>; also its Kafka principal"
    )
    description: str = Field(default="", description="What the application does")

    @property
    def key(self) -> str:
        """`application/<domain>/<name>`."""
        return f"application/{_path(self.application)}"


class CredentialsRequested(Intent):
    """Emitted by a domain to make or rotate the credentials of a principal of its own."""

    principal: str = Field(description="The domain's name or one of its application ids")
    cluster: str = Field(description="Cluster where the principal logs in")

    @property
    def key(self) -> str:
        """`credentials/<cluster>/<principal>`."""
        return f"credentials/{self.cluster}/{self.principal}"


class ProductPublished(Intent):
    """Emitted by a domain when it offers one of its topics as a data product."""

    product: str = Field(description="Product id, <domain>.<name>")
    topic: str = Field(description="Topic in the domain's home cluster, <domain>.<something>")
    description: str = Field(description="What a consumer finds in it")
    owner: str = Field(description="Id of the accountable owner")
    quality: Quality = Field(description="RAW, STANDARD (curated) or ENRICHED (authoritative)")
    sla: int = Field(description="Service tier, 1 (best) to 3")
    tags: list[str] = Field(default_factory=list, description="Words to find it by")
    version: str = Field(default="1.0.0", description="Version of the product, semantic versioning")
    acknowledged: bool = Field(
        description="The owner knows that a published product is a promise; must be true"
    )

    @property
    def key(self) -> str:
        """`product/<domain>/<name>`."""
        return f"product/{_path(self.product)}"


class ProductUpdated(Intent):
    """Emitted by the owner to change what the catalog says; a null leaves the value as it is."""

    product: str = Field(description="Product id, <domain>.<name>")
    description: str | None = Field(default=None, description="New description")
    owner: str | None = Field(default=None, description="New owner id")
    quality: Quality | None = Field(default=None, description="New quality")
    sla: int | None = Field(default=None, description="New service tier")
    tags: list[str] | None = Field(default=None, description="New tags; replaces the old ones")
    version: str | None = Field(default=None, description="New version")
    topic_replaced: bool = Field(
        default=False,
        description="Whether the topic was made again or has other partitions, and the owner "
        "offers it as it is now",
    )

    @property
    def key(self) -> str:
        """`product/<domain>/<name>`."""
        return f"product/{_path(self.product)}"


class AccessIntent(Intent):
    """What all intents about access name: the product."""

    product: str = Field(description="Product id, <domain>.<name>")

    @property
    def key(self) -> str:
        """`access/<product's domain>/<name>`."""
        return f"access/{_path(self.product)}"


class AccessRequested(AccessIntent):
    """Emitted by a consuming domain: one of its applications wants to read a product.

    The event's id is the id of the request from here on.
    """

    application: str = Field(description="Application id, <domain>.<name>")
    reason: str = Field(description="Why, for the owner and the audit")


class RequestIntent(AccessIntent):
    """What all answers to a request name."""

    request: str = Field(description="Id of the AccessRequested event")

    @property
    def ordering_key(self) -> str:
        """Each request is a thing of its own."""
        return f"{self.key}/{self.request}"


class AccessGranted(RequestIntent):
    """Emitted by the product's owner: the request is granted."""

    reason: str = Field(default="", description="Note of the owner")
    on_revoke: OnRevoke = Field(
        default=OnRevoke.PURGE, description="What becomes of the copy when the last grant ends"
    )
    engine: Engine = Field(
        default=Engine.SPARK, description="What copies, where this grant makes the link"
    )


class AccessDenied(RequestIntent):
    """Emitted by the product's owner: the request is denied, with a reason."""

    reason: str = Field(description="Why, for the requester and the audit")


class AccessRevoked(RequestIntent):
    """Emitted by owner, operator, or the consumer who gives it back: the grant ends now."""

    reason: str = Field(description="Why, for the other side and the audit")


class LinkIntent(Intent):
    """What all link intents name: the product and the cluster it is copied to."""

    product: str = Field(description="Product id, <domain>.<name>")
    cluster: str = Field(description="Cluster that receives the copy")

    @property
    def key(self) -> str:
        """`link/<product's domain>/<name>@<cluster>`."""
        return f"link/{_path(self.product)}@{self.cluster}"


class LinkCreated(LinkIntent):
    """Emitted by the governor when a grant needs a copy, or by a side to restore a deleted one."""

    reason: str = Field(default="", description="Why, for the other side")
    engine: Engine = Field(default=Engine.SPARK, description="What copies")


class LinkPaused(LinkIntent):
    """Emitted by either side: the copy stands still, the rights stay."""

    reason: str = Field(default="", description="Why, for the other side")


class LinkResumed(LinkIntent):
    """Emitted by either side: the copy goes on where it stood."""

    reason: str = Field(default="", description="Why, for the other side")
    engine: Engine | None = Field(
        default=None, description="What copies from now on, null for what did"
    )


class LinkDeleted(LinkIntent):
    """Emitted by the governor after the last grant, or by either side: the copy ends."""

    reason: str = Field(default="", description="Why, for the other side and the audit")


def _path(dotted: str) -> str:
    """`east.users` -> `east/users`; an id without a dot stays as it is, to be refused later."""
    return dotted.replace(".", "/", 1)


def domain_of(dotted: str) -> str:
    """The domain part of a product or application id: `east.users` -> `east`."""
    return dotted.partition(".")[0]


def intents_login(domain: str) -> str:
    """The SCRAM user that appends a domain's intents to the log: `east` -> `east.intents`.

    It is apart from the domain's own login, so that its quota bounds what reaches the log and not
    what the domain writes to its topics.
    """
    return f"{domain}.intents"


INTENTS: tuple[type[Intent], ...] = (
    ClusterRegistered,
    DomainRegistered,
    KeyRegistered,
    KeyRevoked,
    DomainFrozen,
    DomainThawed,
    DomainQuarantined,
    DomainReleased,
    ApplicationRegistered,
    CredentialsRequested,
    ProductPublished,
    ProductUpdated,
    AccessRequested,
    AccessGranted,
    AccessDenied,
    AccessRevoked,
    LinkCreated,
    LinkPaused,
    LinkResumed,
    LinkDeleted,
)
