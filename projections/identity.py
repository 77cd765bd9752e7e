"""Who is who: keys, clusters, domains, applications and their credentials."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from immutables import Map

from mesh_events.decisions import MeshFounded, MeshKeyIntroduced, MeshKeyRevoked, MeshRole
from mesh_events.facts import (
    AclApplied,
    AclRemoved,
    CredentialsIssued,
    EffectFailed,
    RightsFact,
)
from mesh_events.intents import (
    ApplicationRegistered,
    ClusterRegistered,
    CredentialsRequested,
    DomainFrozen,
    DomainQuarantined,
    DomainRegistered,
    DomainReleased,
    DomainThawed,
    KeyRegistered,
    KeyRevoked,
    domain_of,
    intents_login,
)
from mesh_events.meta import MESH_DOMAIN
from projections.table import Table

ISSUE_CREDENTIALS = "issue_credentials"
"""The effect that an `EffectFailed` names when a login could not be made."""
LOGIN_TAKEN = "login_taken"
"""Code of the failure that the cluster has a login of that name which the mesh has not issued."""
UNREPORTED = -1
"""Generation of rights of which the log has not said that they exist."""


class Role(StrEnum):
    """What a key may do."""

    ROOT = "root"
    OPERATOR = "operator"
    GOVERNOR = "governor"
    CONTROLLER = "controller"
    DOMAIN = "domain"


@dataclass(frozen=True, slots=True)
class Key:
    """A public key and whom it speaks for; `revoked` is the generation that ended it."""

    public: str
    role: Role
    domain: str
    since: int
    revoked: int | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Kafka cluster of the mesh; passwords are references.

    registry_url, registry_user, registry_password: the cluster's own schema registry, if it has one
    """

    name: str
    bootstrap_servers: str
    admin_user: str
    admin_password: str
    generation: int
    registry_url: str | None = None
    registry_user: str | None = None
    registry_password: str | None = None


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain; `rights` maps cluster -> generation at which its own rights were applied."""

    name: str
    description: str
    owner: str
    cluster: str
    generation: int
    rights: Map[str, int] = field(default_factory=Map)


@dataclass(frozen=True, slots=True)
class Application:
    """A program of a domain; its id is its Kafka principal."""

    id: str
    description: str
    generation: int
    rights: Map[str, int] = field(default_factory=Map)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of a principal on a cluster: wanted at `generation`, issued at `issued`.

    `failure` tells why they could not be issued yet, `failure_code` is its code.
    """

    principal: str
    cluster: str
    generation: int
    issued: int | None = None
    reference: str | None = None
    failure: str | None = None
    failure_code: str | None = None


@dataclass(frozen=True, slots=True)
class Freeze:
    """Nothing that a domain says counts before `until`, ms of the mesh's clock."""

    domain: str
    until: int
    reason: str
    by: str
    generation: int

    def holds_at(self, time: int) -> bool:
        """Whether it is in force at a time of the mesh's clock, ms; see `Image.ended_by`."""
        return time < self.until


@dataclass(frozen=True, slots=True)
class Quarantine:
    """A domain is cut off: nothing that it says counts, and it has no rights."""

    domain: str
    reason: str
    by: str
    generation: int


@dataclass(frozen=True, slots=True)
class Identity:
    """All of the above. `root` is the key that signed the first record of the log."""

    mesh: str = ""
    governance_cluster: str = ""
    root: str | None = None
    keys: Table[str, Key] = field(default_factory=Map)
    clusters: Table[str, Cluster] = field(default_factory=Map)
    domains: Table[str, Domain] = field(default_factory=Map)
    applications: Table[str, Application] = field(default_factory=Map)
    credentials: Table[tuple[str, str], Credentials] = field(default_factory=Map)
    freezes: Table[str, Freeze] = field(default_factory=Map)
    quarantines: Table[str, Quarantine] = field(default_factory=Map)

    def freeze_of(self, domain: str, time: int) -> Freeze | None:
        """The freeze that a domain is under at a time of the mesh's clock (ms), if any.

        Its own or everybody's; for the time see `Image.ended_by`.
        """
        found = (self.freezes.get(name) for name in (MESH_DOMAIN, domain))
        return next((one for one in found if one is not None and one.holds_at(time)), None)

    def knows(self, signer: str) -> bool:
        """Whether a key is registered, revoked or not; before the first record every key is."""
        return not self.keys or signer in self.keys

    def key_of(self, signer: str | None) -> Key | None:
        """The registered key of a signer, revoked or not."""
        return self.keys.get(signer) if signer is not None else None

    def party_of(self, signer: str | None) -> str:
        """Whose bound a signer counts to: its domain's, or `mesh/<role>` of a part of the mesh."""
        key = self.key_of(signer)
        if key is None or key.role is Role.DOMAIN:
            return key.domain if key is not None else ""
        return f"{key.domain}/{key.role}"

    def is_in_force(self, signer: str | None) -> bool:
        """Whether what `signer` signs may count."""
        key = self.key_of(signer)
        return key is not None and key.revoked is None

    def has_role(self, signer: str | None, role: Role) -> bool:
        """Whether `signer` holds `role` now."""
        key = self.key_of(signer)
        return key is not None and key.role is role and key.revoked is None


def rooted(identity: Identity, root: str) -> Identity:
    """The first record was signed by `root`."""
    key = Key(root, Role.ROOT, MESH_DOMAIN, since=0)
    return replace(identity, root=root, keys=identity.keys.set(root, key))


def founded(identity: Identity, event: MeshFounded, offset: int) -> Identity:
    """The root named the keys of operator, governor and controller."""
    keys = identity.keys
    for public, role in (
        (event.operator_key, Role.OPERATOR),
        (event.governor_key, Role.GOVERNOR),
        (event.controller_key, Role.CONTROLLER),
    ):
        keys = keys.set(public, Key(public, role, MESH_DOMAIN, since=offset))
    return replace(
        identity, mesh=event.mesh, governance_cluster=event.governance_cluster, keys=keys
    )


def mesh_key_introduced(identity: Identity, event: MeshKeyIntroduced, offset: int) -> Identity:
    """The root gave a part of the mesh another key; one that is known already stays as it is."""
    role = _MESH_ROLES.get(event.role)
    if role is None or event.public_key in identity.keys:
        return identity
    key = Key(event.public_key, role, MESH_DOMAIN, since=offset)
    return replace(identity, keys=identity.keys.set(event.public_key, key))


def mesh_key_revoked(identity: Identity, event: MeshKeyRevoked, offset: int) -> Identity:
    """The root took a key away, whosever it is but its own; one that nobody has yet, for ever."""
    nobodys = Key(event.public_key, Role.DOMAIN, "", since=offset)
    key = identity.keys.get(event.public_key, nobodys)
    if key.role is Role.ROOT or key.revoked is not None:
        return identity
    return replace(identity, keys=identity.keys.set(event.public_key, replace(key, revoked=offset)))


_MESH_ROLES = {
    MeshRole.OPERATOR: Role.OPERATOR,
    MeshRole.GOVERNOR: Role.GOVERNOR,
    MeshRole.CONTROLLER: Role.CONTROLLER,
}


def cluster_registered(identity: Identity, event: ClusterRegistered, generation: int) -> Identity:
    """A cluster joined, or its address changed."""
    cluster = Cluster(
        event.cluster,
        event.bootstrap_servers,
        event.admin_user,
        event.admin_password,
        generation,
        event.registry_url,
        event.registry_user,
        event.registry_password,
    )
    return replace(identity, clusters=identity.clusters.set(event.cluster, cluster))


def domain_registered(identity: Identity, event: DomainRegistered, generation: int) -> Identity:
    """A domain joined: its first key, its login at home and two on the governance cluster."""
    domain = Domain(event.domain, event.description, event.owner, event.cluster, generation)
    identity = replace(
        identity,
        domains=identity.domains.set(event.domain, domain),
        keys=_with_key(identity, event, generation),
    )
    for cluster in sorted({event.cluster, identity.governance_cluster}):
        identity = _wanted(identity, event.domain, cluster, generation)
    login = intents_login(event.domain)
    return _wanted(identity, login, identity.governance_cluster, generation)


def key_registered(identity: Identity, event: KeyRegistered, generation: int) -> Identity:
    """Another key may speak for a domain."""
    return replace(identity, keys=_with_key(identity, event, generation))


def _with_key(
    identity: Identity, event: DomainRegistered | KeyRegistered, generation: int
) -> Table[str, Key]:
    """The keys with a domain's; the root may have revoked it while its registration waited."""
    before = identity.keys.get(event.public_key)
    revoked = None if before is None else before.revoked
    key = Key(event.public_key, Role.DOMAIN, event.domain, since=generation, revoked=revoked)
    return identity.keys.set(event.public_key, key)


def key_revoked(identity: Identity, event: KeyRevoked, generation: int) -> Identity:
    """A key no longer speaks for its domain."""
    key = replace(identity.keys[event.public_key], revoked=generation)
    return replace(identity, keys=identity.keys.set(event.public_key, key))


def domain_frozen(identity: Identity, event: DomainFrozen, until: int, generation: int) -> Identity:
    """A domain, or all of them, is to be silent until a time of the mesh's clock, ms."""
    freeze = Freeze(event.domain, until, event.reason, event.meta.actor, generation)
    return replace(identity, freezes=identity.freezes.set(event.domain, freeze))


def domain_thawed(identity: Identity, event: DomainThawed) -> Identity:
    """The freeze ended before its time."""
    return replace(identity, freezes=identity.freezes.delete(event.domain))


def domain_quarantined(identity: Identity, event: DomainQuarantined, generation: int) -> Identity:
    """A domain is cut off: own rights may exist wherever they were wanted, until seen gone."""
    found = Quarantine(event.domain, event.reason, event.meta.actor, generation)
    identity = replace(identity, quarantines=identity.quarantines.set(event.domain, found))
    home = identity.domains[event.domain].cluster
    places = frozenset({home, identity.governance_cluster})
    return _other_rights(identity, event.domain, generation, places, frozenset({home}))


def domain_released(identity: Identity, event: DomainReleased, generation: int) -> Identity:
    """A domain is cut off no more."""
    identity = replace(identity, quarantines=identity.quarantines.delete(event.domain))
    return _other_rights(identity, event.domain, generation)


def _other_rights(
    identity: Identity,
    name: str,
    generation: int,
    places: frozenset[str] = frozenset(),
    of_applications: frozenset[str] = frozenset(),
) -> Identity:
    """A domain and its applications are to have other rights from this generation on.

    `places` are clusters on which the domain's may exist though the log never said so, and
    `of_applications` those on which its applications' may.
    """
    domain = identity.domains[name]
    domain = replace(domain, generation=generation, rights=_maybe(domain.rights, places))
    applications = identity.applications
    for one, found in identity.applications.items():
        if domain_of(one) == name:
            rights = _maybe(found.rights, of_applications)
            applications = applications.set(
                one, replace(found, generation=generation, rights=rights)
            )
    return replace(identity, domains=identity.domains.set(name, domain), applications=applications)


def _maybe(rights: Map[str, int], places: frozenset[str]) -> Map[str, int]:
    """The rights, and those of which the log has not said that they exist."""
    return rights.update(dict.fromkeys(places - set(rights), UNREPORTED))


def application_registered(
    identity: Identity, event: ApplicationRegistered, generation: int
) -> Identity:
    """A domain has a program; it gets credentials on the domain's home cluster."""
    application = Application(event.application, event.description, generation)
    identity = replace(
        identity, applications=identity.applications.set(event.application, application)
    )
    home = identity.domains[domain_of(event.application)].cluster
    return _wanted(identity, event.application, home, generation)


def credentials_requested(
    identity: Identity, event: CredentialsRequested, generation: int
) -> Identity:
    """A principal's credentials are to be made anew."""
    return _wanted(identity, event.principal, event.cluster, generation)


def credentials_issued(identity: Identity, event: CredentialsIssued) -> Identity:
    """A controller set the password; an older generation changes nothing."""
    wanted = identity.credentials.get((event.principal, event.cluster))
    if wanted is None or wanted.generation != event.generation:
        return identity
    issued = replace(
        wanted,
        issued=event.generation,
        reference=event.reference,
        failure=None,
        failure_code=None,
    )
    return replace(
        identity, credentials=identity.credentials.set((event.principal, event.cluster), issued)
    )


def credentials_failed(identity: Identity, event: EffectFailed) -> Identity:
    """A controller could not set the password; one that was set already changes nothing."""
    pair = (event.subject, event.cluster)
    wanted = identity.credentials.get(pair)
    if event.effect != ISSUE_CREDENTIALS or wanted is None:
        return identity
    if wanted.generation != event.generation or wanted.issued == event.generation:
        return identity
    failed = replace(wanted, failure=event.reason, failure_code=event.code or None)
    return replace(identity, credentials=identity.credentials.set(pair, failed))


def rights_applied(identity: Identity, event: AclApplied) -> Identity:
    """A domain's or an application's own rights exist on a cluster.

    No controller reports so of a domain that is cut off: the fact would undo that they are gone.
    """
    owner = _owner(identity, event)
    if owner is None or _domain_of(owner) in identity.quarantines:
        return identity
    return _put(identity, replace(owner, rights=owner.rights.set(event.cluster, event.generation)))


def rights_removed(identity: Identity, event: AclRemoved) -> Identity:
    """A domain's or an application's own rights are gone from a cluster."""
    owner = _owner(identity, event)
    if owner is None or event.cluster not in owner.rights:
        return identity
    return _put(identity, replace(owner, rights=owner.rights.delete(event.cluster)))


def _owner(identity: Identity, event: RightsFact) -> Domain | Application | None:
    """Whose own rights a fact is about, if it is about those of its present generation."""
    kind, _, name = event.subject.partition("/")
    found: Domain | Application | None = None
    if kind == "domain":
        found = identity.domains.get(name)
    elif kind == "application":
        found = identity.applications.get(name)
    return found if found is not None and found.generation == event.generation else None


def _domain_of(owner: Domain | Application) -> str:
    return owner.name if isinstance(owner, Domain) else owner.id.partition(".")[0]


def _put(identity: Identity, owner: Domain | Application) -> Identity:
    if isinstance(owner, Domain):
        return replace(identity, domains=identity.domains.set(owner.name, owner))
    return replace(identity, applications=identity.applications.set(owner.id, owner))


def _wanted(identity: Identity, principal: str, cluster: str, generation: int) -> Identity:
    before = identity.credentials.get((principal, cluster))
    wanted = Credentials(
        principal, cluster, generation, reference=before.reference if before else None
    )
    return replace(identity, credentials=identity.credentials.set((principal, cluster), wanted))
