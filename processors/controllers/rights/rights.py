"""The rights controller: exactly the accepted rights on the real clusters.

What should be is derived from the image (`wishes`); what is, is asked from the cluster. A right
counts as applied or gone only after it was seen so there.
"""

import time
from collections.abc import Iterable
from operator import is_

import structlog

from mesh_events.errors import InfrastructureError, MeshError
from mesh_events.facts import AclApplied, AclRemoved
from processors.clusters.drift import RIGHTS, Policy, of_wish, wrong
from processors.clusters.kafka import AT_ONCE, ClusterAdmin, pieces
from processors.clusters.principals import Held, Holder, held
from processors.clusters.rights import Binding, Operation, Resource, Wish
from processors.controllers.checks.checks import Clusters
from processors.controllers.controller import Leadership, guarded
from processors.controllers.gates import Gates
from processors.controllers.lanes import Job, Lanes, SerialLanes, for_a_while, in_turn
from processors.controllers.rights.unexpected import LOOK_S, UnexpectedAcls
from processors.controllers.rights.wishes import current, may_not_read, returned
from processors.controllers.topics.drift_reporter import DriftReporter
from processors.controllers.topics.product_topics import ProductTopics
from processors.crash_points import crash_point
from projections.image import Image

log = structlog.get_logger(__name__)
_TOGETHER_S = 10.0
"""So long they are taken, before a later revocation has its turn."""
PUT_OFF_S = 30.0
"""So long a look for drift is put off at most, while what is granted changes all the time."""


def _parts(image: Image, leadership: Leadership) -> tuple[object, ...]:
    """What wishes are made of: where none of it changed, none of them did."""
    jobs = image.links, image.statements, image.connectors
    return image.identity, image.access, *jobs, leadership.epoch


def _granted(image: Image) -> tuple[object, ...]:
    """What a revocation or a quarantine changes."""
    return image.identity, image.access


class _Readers:
    """What statements and connectors hold on a cluster, for one look."""

    def __init__(self, image: Image, cluster: str, here: Held) -> None:
        self._image, self._cluster = image, cluster
        self._held: dict[tuple[str, str], list[tuple[Binding, Holder]]] = {}
        for right, job in here.jobs:
            self._held.setdefault((job.domain, right.name), []).append((right, job))

    def ended(self, wish: Wish) -> set[Binding]:
        """What those of an ended grant's consumer hold on its topic and may not; once."""
        topics = {right.name for right in wish.bindings if right.resource is Resource.TOPIC}
        return {
            right
            for topic in topics
            for right, job in self._held.pop((wish.through, topic), ())
            if may_not_read(self._image, job, self._cluster, topic)
        }


def _of_quarantined(image: Image, here: Held) -> set[Binding]:
    """What statements and connectors of domains in quarantine may do with topics.

    Their controllers find by the others what there is to end: logins, transactions, marks.
    """
    return {
        right
        for right, job in here.jobs
        if right.operation is not Operation.DESCRIBE and job.domain in image.identity.quarantines
    }


def _take(rights: Iterable[Binding], admin: ClusterAdmin, leadership: Leadership) -> None:
    leadership.check()
    admin.withdraw(sorted(rights))


def _in_order(wishes: Iterable[Wish]) -> list[Wish]:
    """Revocations first, what was reported last, and one wish of each domain after the other.

    A domain that asks for thousands of rights delays its own. Of those that it loses the ones at
    products of others go first.
    """

    def kind(wish: Wish) -> tuple[bool, bool, bool]:
        return wish.wanted, wish.reported, not wish.through

    turns = in_turn(wishes, lambda wish: (*kind(wish), wish.principal.partition(".")[0]))
    return sorted(turns, key=kind)


class RightsController:
    """Grants what is missing, withdraws what was revoked, and reports what it saw.

    Looks at a cluster whenever a wish changed, and every so often anyway, for what drifted.

    Args:
        clusters: gives a cluster's admin.
        lanes: how clusters are worked on side by side.
        policy: what is done about rights that the log says are there or gone, and are not.
        unexpected: looks for rights that nobody granted; nobody does without it.
        look_s: seconds from one look at a cluster to the next when no wish changed.
        gates: held while rights that hung on a grant are taken; who gives such rights holds them.
        topics: looks for the topics of products; nobody does without it.
    """

    name = "rights"

    def __init__(
        self,
        clusters: Clusters,
        lanes: Lanes | None = None,
        policy: Policy = Policy.REPAIR,
        unexpected: UnexpectedAcls | None = None,
        look_s: float = LOOK_S,
        gates: Gates | None = None,
        topics: ProductTopics | None = None,
    ) -> None:
        self._clusters, self._lanes = clusters, lanes or SerialLanes()
        self._policy, self._unexpected, self._look_s = policy, unexpected, look_s
        self._gates, self._topics = gates or Gates(), topics
        self._looked: dict[str, tuple[tuple[object, ...], float]] = {}
        # cluster -> when drift was looked for last, or was to be for the first time
        self._compared: dict[str, float] = {}
        # of the newest round, while earlier ones are under way in lanes
        self._newest: tuple[object, ...] = ()
        self._reporters: dict[str, DriftReporter] = {}

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        """Compare and repair once, each cluster in a lane of its own."""
        self._newest = _granted(image)
        parts = _parts(image, leadership)
        due = {name for name in image.identity.clusters if self._due(name, parts)}
        if not due:
            return
        wishes = list(current(image))
        keep = {(wish.cluster, right) for wish in wishes if wish.wanted for right in wish.bindings}

        def job(cluster: str) -> Job:
            here = [wish for wish in wishes if wish.cluster == cluster]
            return lambda: self._cluster(cluster, here, keep, image, leadership)

        self._lanes.run({cluster: job(cluster) for cluster in due}, image, leadership)

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
        leadership: Leadership,
    ) -> None:
        """Compare and repair one cluster."""
        self._looked.pop(cluster, None)
        parts = _parts(image, leadership)
        reporter = self._reporters.setdefault(cluster, DriftReporter(cluster, image, leadership))
        reporter.begin(image, leadership)
        try:
            with guarded(f"cluster {cluster}"):
                admin = self._clusters(image, cluster)
                with self._gates(cluster):
                    # who gave by an older state has done so; who comes later asks the log
                    pass
                actual = set(admin.rights())
                here = held(image, actual)
                wishes = [*wishes, *returned(image, cluster, here)]
                readers = _Readers(image, cluster, here)
                theirs = {wish: readers.ended(wish) for wish in wishes if wish.through}
                ended = _of_quarantined(image, here)
                left = not self._withdraw(wishes, ended, admin, actual, keep, leadership)
                # what is as it should be takes no turn
                work = [
                    wish
                    for wish in _in_order(wishes)
                    if not wish.reported or theirs.get(wish) or wrong(wish, actual, keep)
                ]
                # the rest comes with the next image: what is revoked meanwhile comes first there,
                # and before an earlier revocation of the same right, which would take it for drift
                for number, wish in enumerate([] if left else for_a_while(work), 1):
                    self._end_readers(wish, admin, theirs.get(wish, set()), leadership)
                    self._settle(wish, admin, actual, keep, leadership)
                    left = number < len(work)
                left = left or self._puts_off(cluster, image)
                if not left:
                    self._tell_drift(wishes, admin, actual, keep, reporter)
                    self._compared[cluster] = time.monotonic()
        except MeshError as error:
            log.warning("rights_not_settled", cluster=cluster, error=str(error))
        else:
            if not left:
                self._looked[cluster] = parts, time.monotonic()

    def _puts_off(self, cluster: str, image: Image) -> bool:
        """Whether drift is looked for at the next image: a revocation waits for no look.

        Where there is always a newer one, it is looked for all the same, now and then.
        """
        now = time.monotonic()
        since = self._compared.setdefault(cluster, now)
        changed = not all(map(is_, self._newest, _granted(image)))
        return changed and now - since < PUT_OFF_S

    def _tell_drift(
        self,
        wishes: list[Wish],
        admin: ClusterAdmin,
        actual: set[Binding],
        keep: set[tuple[str, Binding]],
        reporter: DriftReporter,
    ) -> None:
        """Tell what stays as somebody made it, and look for what nobody granted."""
        found = [
            of_wish(wish, differs)
            for wish in wishes
            if self._leaves(wish) and (differs := wrong(wish, actual, keep))
        ]
        reporter.left(found, RIGHTS)
        if self._unexpected is not None:
            self._unexpected.look(admin, wishes, reporter)
        if self._topics is not None:
            self._topics.look(admin, reporter)
        reporter.held()

    def _leaves(self, wish: Wish) -> bool:
        """Whether a difference is somebody else's doing that is told and left."""
        return wish.reported and self._policy is Policy.REPORT

    def _settle(
        self,
        wish: Wish,
        admin: ClusterAdmin,
        actual: set[Binding],
        keep: set[tuple[str, Binding]],
        leadership: Leadership,
    ) -> None:
        """Make one wish true, see that it is, and say so once."""
        differs = wrong(wish, actual, keep)
        if differs and not self._leaves(wish):
            self._tell_found(wish, differs, leadership)
            self._repair(wish, admin, differs, leadership)
            actual ^= differs
        if not wish.reported:
            self._report(
                wish, AclApplied if wish.wanted else AclRemoved, wish.generation, leadership
            )

    def _tell_found(self, wish: Wish, differs: set[Binding], leadership: Leadership) -> None:
        """Report rights that a worker gave just before it died, before they are withdrawn."""
        if differs and wish.unreported is not None:
            self._report(wish, AclApplied, wish.unreported, leadership)

    @staticmethod
    def _report(
        wish: Wish, fact: type[AclApplied | AclRemoved], generation: int, leadership: Leadership
    ) -> None:
        step = f"acl-{'applied' if fact is AclApplied else 'removed'}-{wish.cluster}"
        leadership.report(
            fact(
                meta=leadership.meta(wish.subject, step, generation, correlation=wish.correlation),
                subject=wish.subject,
                cluster=wish.cluster,
                generation=generation,
                bindings=[str(binding) for binding in sorted(wish.bindings)],
            )
        )

    def _withdraw(
        self,
        wishes: list[Wish],
        ended: set[Binding],
        admin: ClusterAdmin,
        actual: set[Binding],
        keep: set[tuple[str, Binding]],
        leadership: Leadership,
    ) -> bool:
        """Take what was revoked together: a quarantine is of thousands of rights.

        Each is looked at, and told, in its turn afterwards. False where some are left. Those in
        `ended` go with them.
        """
        over = time.monotonic() + _TOGETHER_S
        is_done = True
        took = False
        # fifty sinks of one domain may hold ten thousand: the others' revocations go before those
        begin, *left = pieces(sorted(ended)) or [[]]
        ended = set(begin)
        for wish in _in_order(one for one in wishes if not one.wanted and not one.reported):
            differs = wrong(wish, actual, keep)
            self._tell_found(wish, differs, leadership)
            ended |= differs
            if len(ended) >= AT_ONCE:
                is_done = time.monotonic() < over
                if not is_done:
                    break
                _take(ended, admin, leadership)
                took = True
                ended = set()
        if ended:
            _take(ended, admin, leadership)
        for piece in left:
            is_done = is_done and time.monotonic() < over
            if not is_done:
                break
            _take(piece, admin, leadership)
        if ended or took:
            actual.clear()
            actual.update(admin.rights())
            crash_point("after-effect")
        return is_done

    def _end_readers(
        self, wish: Wish, admin: ClusterAdmin, theirs: set[Binding], leadership: Leadership
    ) -> None:
        """Withdraw what statements and connectors hold by an ended grant, before it is told."""
        if not theirs:
            return
        with self._gates(wish.cluster):
            leadership.check()
            admin.withdraw(sorted(theirs))
            for principal in {right.principal for right in theirs}:
                if theirs & admin.rights(principal=principal):
                    raise InfrastructureError(
                        f"{wish.subject}: {principal} still reads on {wish.cluster}",
                        retriable=True,
                    )

    def _repair(
        self, wish: Wish, admin: ClusterAdmin, differs: set[Binding], leadership: Leadership
    ) -> None:
        """Grant or withdraw, and see it; what the log took for done already is told as drift.

        A crash before it is told leaves the repair without a word: rights come before reports.
        """
        leadership.check()
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
            self._reporters[wish.cluster].repaired(of_wish(wish, differs))
