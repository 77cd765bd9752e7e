"""The rights keeper: exactly the accepted rights on the real clusters.

What should be is derived from the image (`desired`); what is, is asked from the cluster. A right
counts as applied or gone only after it was seen so there.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from operator import is_
from threading import Lock

import structlog

from mesh_events import topics
from mesh_events.errors import InfrastructureError, MeshError
from mesh_events.facts import AclApplied, AclRemoved
from mesh_events.intents import intents_login
from processors.clusters import ClusterAdmin
from processors.connect.principals import PRINCIPALS, principal_of
from processors.crash_points import crash_point
from processors.drift import RIGHTS, Policy, of_wish, wrong
from processors.keepers import fence
from processors.keepers.checks import Clusters
from processors.keepers.drift_telling import DriftTelling
from processors.keepers.keeper import Reign, guarded
from processors.keepers.lanes import Job, Lanes, OneByOne, for_a_while, in_turn
from processors.keepers.product_topics import ProductTopics
from processors.keepers.strangers import LOOK_S, Strangers
from processors.rights import Binding, Operation, Resource, Wish, reader
from projections.access import ENTITLED, Access, State
from projections.connectors import Connector
from projections.identity import Application, Domain
from projections.image import Image
from projections.links import Copy, Desired
from projections.sources import not_granted
from projections.statements import Statement

log = structlog.get_logger(__name__)
_AT_ONCE = 1000
"""Bindings in one request; Kafka's controller takes some thousands."""
_THROUGH = (fence.STATEMENTS, PRINCIPALS)


def desired(image: Image) -> Iterator[Wish]:
    """Every right that the image calls for or calls off, domains and applications first."""
    for _, domain in sorted(image.identity.domains.items()):
        yield from _of_domain(image, domain)
    for _, application in sorted(image.identity.applications.items()):
        yield _of_application(image, application)
    for access in _in_question(image):
        wish = _of_access(image, access)
        if wish is not None:
            yield wish


def _in_question(image: Image) -> list[Access]:
    """The accesses whose rights are to be looked at, oldest first.

    Of those that have ended the last one of an application at a topic: the others had the same.
    """
    found, ended = list[Access](), dict[tuple[str, str, str], Access]()
    for access in image.access.requests.values():
        if access.state is not State.REVOKED:
            found.append(access)
            continue
        place = (access.application, access.cluster, access.topic)
        if place not in ended or ended[place].changed < access.changed:
            ended[place] = access
    return sorted((*found, *ended.values()), key=lambda one: one.offset)


def domain_rights(domain: str, *, home: bool, governance: bool) -> frozenset[Binding]:
    """A domain owns what carries its prefix at home, and takes part in the governance log.

    Of groups it has what consumers need, and no settings: Kafka bounds neither their number nor
    their length, and a controller that can no longer write them down does not start again.
    """
    prefix, everything = f"{domain}.", Operation.ALL
    found: set[Binding] = {
        Binding(domain, operation, Resource.GROUP, prefix, prefixed=True)
        for operation in (Operation.READ, Operation.DELETE)
    }
    if home:
        found |= {
            Binding(domain, everything, Resource.TOPIC, prefix, prefixed=True),
            Binding(domain, everything, Resource.TRANSACTIONAL_ID, prefix, prefixed=True),
        }
    if governance:
        login = intents_login(domain)
        found |= {
            Binding(domain, Operation.READ, Resource.TOPIC, "mesh.", prefixed=True),
            Binding(login, Operation.WRITE, Resource.TOPIC, topics.GOVERNANCE),
            # whoever appends an intent waits for its decision
            Binding(login, Operation.READ, Resource.TOPIC, "mesh.", prefixed=True),
            Binding(login, Operation.READ, Resource.GROUP, f"{login}.", prefixed=True),
        }
    return frozenset(found)


def _of_domain(image: Image, domain: Domain) -> Iterator[Wish]:
    governance = image.identity.governance_cluster
    wanted = domain.name not in image.identity.quarantines
    for cluster in sorted({domain.cluster, governance}):
        yield Wish(
            subject=f"domain/{domain.name}",
            cluster=cluster,
            generation=domain.generation,
            correlation=domain.name,
            principal=domain.name,
            bindings=domain_rights(
                domain.name, home=cluster == domain.cluster, governance=cluster == governance
            ),
            wanted=wanted,
            reported=_own_reported(domain, cluster, wanted=wanted),
        )


def _of_application(image: Image, application: Application) -> Wish:
    """An application reads what its domain owns, in consumer groups of its own."""
    domain = image.identity.domains[application.id.partition(".")[0]]
    home, prefix, read = domain.cluster, f"{application.id}.", Operation.READ
    wanted = domain.name not in image.identity.quarantines
    return Wish(
        subject=f"application/{application.id}",
        cluster=home,
        generation=application.generation,
        correlation=application.id,
        principal=application.id,
        bindings=frozenset(
            {
                Binding(application.id, read, Resource.GROUP, prefix, prefixed=True),
                Binding(application.id, read, Resource.TOPIC, f"{domain.name}.", prefixed=True),
            }
        ),
        wanted=wanted,
        reported=_own_reported(application, home, wanted=wanted),
    )


def _own_reported(owner: Domain | Application, cluster: str, *, wanted: bool) -> bool:
    """Whether the log says that somebody's own rights are there, or gone."""
    return owner.rights.get(cluster) == (owner.generation if wanted else None)


def _of_access(image: Image, access: Access) -> Wish | None:
    """A grant is applied once there is something to read; a revocation is applied at once.

    A right that was revoked stays unwanted for ever: a worker that was replaced while it granted
    may finish that call long after its successor saw the right gone.
    """
    entitled = access.state in ENTITLED
    if not entitled and access.state not in (State.REVOKING, State.REVOKED):
        return None
    wanted = entitled and access.consumer not in image.identity.quarantines
    if wanted and access.link is not None:
        link = image.links.get(access.link)
        if link is not None and link.desired is Desired.REMOVED:
            # somebody removed the link under the grant: its readers go before the copy does
            wanted = False
        elif link is None or link.copy is not Copy.PRESENT:
            return None
    return Wish(
        subject=access.request,
        cluster=access.cluster,
        generation=access.generation,
        correlation=access.request,
        principal=access.application,
        bindings=reader(access.application, access.topic),
        wanted=wanted,
        reported=access.state is State.ACTIVE if wanted else _seen_gone(access),
        through="" if wanted else access.consumer,
        unreported=None if wanted else _unreported(access),
    )


def _unreported(access: Access) -> int | None:
    """The last application of the rights that was asked for before, and was not reported."""
    return max((one for one in access.applying if one < access.generation), default=None)


def readers_by(image: Image, consumer: str, cluster: str, topic: str) -> list[str]:
    """What of a consumer's may not read a topic: not now, or not any more.

    Statements by their ids, also those whose text has changed since: their last start may still
    read by the one before. Connectors by their principals.
    """

    def is_ended(one: Statement | Connector) -> bool:
        return (
            one.domain == consumer
            and one.cluster == cluster
            and (
                consumer in image.identity.quarantines
                or not one.stands
                or topic not in one.reads
                or bool(not_granted(image, consumer, one.application, cluster, [topic]))
            )
        )

    return [
        *(one.id for one in image.statements.values() if is_ended(one)),
        *(principal_of(one.id) for one in image.connectors.values() if is_ended(one)),
    ]


def _seen_gone(access: Access) -> bool:
    """Whether the log says that the rights are gone."""
    withdrawn = access.state is not State.REVOKING and not access.withdrawing
    return withdrawn and not access.is_enforced


def _parts(image: Image, reign: Reign) -> tuple[object, ...]:
    """What wishes are made of: where none of it changed, none of them did."""
    jobs = image.links, image.statements, image.connectors
    return image.identity, image.access, *jobs, reign.epoch


class _Readers:
    """What statements and connectors hold on a cluster, and may not hold any more; for one look.

    Many grants of one topic may have ended: each consumer's is looked at once.
    """

    def __init__(self, image: Image, cluster: str, actual: Iterable[Binding]) -> None:
        self._image, self._cluster = image, cluster
        self._held: dict[str, set[Binding]] = {}
        for right in actual:
            if right.resource is Resource.TOPIC and right.principal.startswith(_THROUGH):
                self._held.setdefault(right.name, set()).add(right)
        self._looked = set[tuple[str, str]]()

    def ended(self, consumer: str, topic: str) -> set[Binding]:
        """What a consumer's hold on a topic and may not; nothing at the second time."""
        held = self._held.get(topic)
        if not held or (consumer, topic) in self._looked:
            return set()
        self._looked.add((consumer, topic))
        ended = readers_by(self._image, consumer, self._cluster, topic)
        return {
            right
            for right in held
            if any(right.principal == one or fence.is_writer(right.principal, one) for one in ended)
        }


def _in_order(wishes: Iterable[Wish]) -> list[Wish]:
    """Revocations first, what was reported last, and one wish of each domain after the other.

    A domain that asks for thousands of rights delays its own. Of those that it loses the ones at
    products of others go first.
    """

    def kind(wish: Wish) -> tuple[bool, bool, bool]:
        return wish.wanted, wish.reported, not wish.through

    turns = in_turn(wishes, lambda wish: (*kind(wish), wish.principal.partition(".")[0]))
    return sorted(turns, key=kind)


class RightsKeeper:
    """Grants what is missing, withdraws what was revoked, and reports what it saw.

    Looks at a cluster whenever a wish changed, and every so often anyway, for what drifted.

    Args:
        clusters: gives a cluster's admin.
        lanes: how clusters are worked on side by side.
        policy: what is done about rights that the log says are there or gone, and are not.
        strangers: looks for rights that nobody granted; nobody does without it.
        look_s: seconds from one look at a cluster to the next when no wish changed.
        gate: held while rights that hung on a grant are taken; who gives such rights holds it too.
        topics: looks for the topics of products; nobody does without it.
    """

    name = "rights"

    def __init__(
        self,
        clusters: Clusters,
        lanes: Lanes | None = None,
        policy: Policy = Policy.REPAIR,
        strangers: Strangers | None = None,
        look_s: float = LOOK_S,
        gate: AbstractContextManager[object] | None = None,
        topics: ProductTopics | None = None,
    ) -> None:
        self._clusters, self._lanes = clusters, lanes or OneByOne()
        self._policy, self._strangers, self._look_s = policy, strangers, look_s
        self._gate, self._topics = gate or Lock(), topics
        self._looked: dict[str, tuple[tuple[object, ...], float]] = {}
        self._tellings: dict[str, DriftTelling] = {}

    def reconcile(self, image: Image, reign: Reign) -> None:
        """Compare and repair once, each cluster in a lane of its own."""
        parts = _parts(image, reign)
        due = {name for name in image.identity.clusters if self._due(name, parts)}
        if not due:
            return
        wishes = list(desired(image))
        keep = {(wish.cluster, right) for wish in wishes if wish.wanted for right in wish.bindings}

        def job(cluster: str) -> Job:
            here = [wish for wish in wishes if wish.cluster == cluster]
            return lambda: self._cluster(cluster, here, keep, image, reign)

        self._lanes.run({cluster: job(cluster) for cluster in due}, image, reign)

    def _due(self, cluster: str, parts: tuple[object, ...]) -> bool:
        if cluster not in self._looked:
            return True
        seen, looked = self._looked[cluster]
        return not all(map(is_, seen, parts)) or time.monotonic() - looked >= self._look_s

    def _cluster(
        self,
        cluster: str,
        wishes: list[Wish],
        keep: set[tuple[str, Binding]],
        image: Image,
        reign: Reign,
    ) -> None:
        """Compare and repair one cluster."""
        self._looked.pop(cluster, None)
        parts = _parts(image, reign)
        telling = self._tellings.setdefault(cluster, DriftTelling(cluster, image, reign))
        telling.begin(image, reign)
        try:
            with guarded(f"cluster {cluster}"):
                admin = self._clusters(image, cluster)
                actual = set(admin.rights())
                readers = _Readers(image, cluster, actual)
                self._withdraw(wishes, admin, actual, keep, reign)
                # the rest comes with the next image: what is revoked meanwhile comes first there,
                # and before an earlier revocation of the same right, which would take it for drift
                left = len(wishes)
                for wish in for_a_while(_in_order(wishes)):
                    if wish.through:
                        self._end_readers(wish, admin, readers, reign)
                    self._settle(wish, admin, actual, keep, reign)
                    left -= 1
                if not left:
                    self._tell_drift(wishes, admin, actual, keep, telling)
        except MeshError as error:
            log.warning("rights_not_settled", cluster=cluster, error=str(error))
        else:
            if not left:
                self._looked[cluster] = parts, time.monotonic()

    def _tell_drift(
        self,
        wishes: list[Wish],
        admin: ClusterAdmin,
        actual: set[Binding],
        keep: set[tuple[str, Binding]],
        telling: DriftTelling,
    ) -> None:
        """Tell what stays as somebody made it, and look for what nobody granted."""
        found = [
            of_wish(wish, differs)
            for wish in wishes
            if self._leaves(wish) and (differs := wrong(wish, actual, keep))
        ]
        telling.left(found, RIGHTS)
        if self._strangers is not None:
            self._strangers.look(admin, wishes, telling)
        if self._topics is not None:
            self._topics.look(admin, telling)
        telling.held()

    def _leaves(self, wish: Wish) -> bool:
        """Whether a difference is somebody else's doing that is told and left."""
        return wish.reported and self._policy is Policy.REPORT

    def _settle(
        self,
        wish: Wish,
        admin: ClusterAdmin,
        actual: set[Binding],
        keep: set[tuple[str, Binding]],
        reign: Reign,
    ) -> None:
        """Make one wish true, see that it is, and say so once."""
        differs = wrong(wish, actual, keep)
        if differs and not self._leaves(wish):
            self._tell_found(wish, differs, reign)
            self._repair(wish, admin, differs, reign)
            actual ^= differs
        if not wish.reported:
            self._report(wish, AclApplied if wish.wanted else AclRemoved, wish.generation, reign)

    def _tell_found(self, wish: Wish, differs: set[Binding], reign: Reign) -> None:
        """Report rights that a worker gave just before it died, before they are withdrawn."""
        if differs and wish.unreported is not None:
            self._report(wish, AclApplied, wish.unreported, reign)

    @staticmethod
    def _report(
        wish: Wish, fact: type[AclApplied | AclRemoved], generation: int, reign: Reign
    ) -> None:
        step = f"acl-{'applied' if fact is AclApplied else 'removed'}-{wish.cluster}"
        reign.report(
            fact(
                meta=reign.meta(wish.subject, step, generation, correlation=wish.correlation),
                subject=wish.subject,
                cluster=wish.cluster,
                generation=generation,
                bindings=[str(binding) for binding in sorted(wish.bindings)],
            )
        )

    def _withdraw(
        self,
        wishes: list[Wish],
        admin: ClusterAdmin,
        actual: set[Binding],
        keep: set[tuple[str, Binding]],
        reign: Reign,
    ) -> None:
        """Take what was revoked together: a quarantine is of thousands of rights.

        Each is looked at, and told, in its turn afterwards.
        """
        ended = set[Binding]()
        for wish in _in_order(one for one in wishes if not one.wanted and not one.reported):
            if len(ended) >= _AT_ONCE:
                break
            differs = wrong(wish, actual, keep)
            self._tell_found(wish, differs, reign)
            ended |= differs
        if not ended:
            return
        reign.check()
        admin.withdraw(sorted(ended))
        actual.clear()
        actual.update(admin.rights())
        crash_point("after-effect")

    def _end_readers(
        self, wish: Wish, admin: ClusterAdmin, readers: _Readers, reign: Reign
    ) -> None:
        """Withdraw what statements and connectors hold by an ended grant, before it is told."""
        topics = {right.name for right in wish.bindings if right.resource is Resource.TOPIC}
        theirs = {right for topic in topics for right in readers.ended(wish.through, topic)}
        if not theirs:
            return
        with self._gate:
            reign.check()
            admin.withdraw(sorted(theirs))
            for principal in {right.principal for right in theirs}:
                if theirs & admin.rights(principal=principal):
                    raise InfrastructureError(
                        f"{wish.subject}: {principal} still reads on {wish.cluster}",
                        retriable=True,
                    )

    def _repair(self, wish: Wish, admin: ClusterAdmin, differs: set[Binding], reign: Reign) -> None:
        """Grant or withdraw, and see it; what the log took for done already is told as drift.

        A crash before it is told leaves the repair without a word: rights come before reports.
        """
        reign.check()
        change = admin.grant if wish.wanted else admin.withdraw
        change(sorted(differs))
        principals = {binding.principal for binding in differs}
        seen = {right for name in principals for right in admin.rights(principal=name)}
        still = differs - seen if wish.wanted else differs & seen
        crash_point("after-effect")
        if still:
            raise InfrastructureError(
                f"{wish.subject}: {len(still)} bindings are not as asked yet", retriable=True
            )
        if wish.reported:
            self._tellings[wish.cluster].repaired(of_wish(wish, differs))
