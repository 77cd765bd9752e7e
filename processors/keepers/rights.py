"""The rights keeper: exactly the accepted rights on the real clusters.

What should be is derived from the image (`desired`); what is, is asked from the cluster. A right
counts as applied or gone only after it was seen so there.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import structlog

from mesh_events import topics
from mesh_events.errors import MeshError
from mesh_events.facts import AclApplied, AclRemoved
from processors.clusters import ClusterAdmin
from processors.crash_points import crash_point
from processors.keepers.checks import Clusters
from processors.keepers.keeper import Reign
from processors.rights import Binding, Operation, Resource, reader
from projections.access import ENTITLED, Access, State
from projections.identity import Application, Domain
from projections.image import Image
from projections.links import Copy

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Wish:
    """Bindings of one subject on one cluster at one generation: wanted there, or wanted gone."""

    subject: str
    cluster: str
    generation: int
    correlation: str
    principal: str
    bindings: frozenset[Binding]
    wanted: bool
    reported: bool


def desired(image: Image) -> Iterator[Wish]:
    """Every right that the image calls for or calls off, domains and applications first."""
    for _, domain in sorted(image.identity.domains.items()):
        yield from _of_domain(image, domain)
    for _, application in sorted(image.identity.applications.items()):
        yield _of_application(image, application)
    for access in sorted(image.access.requests.values(), key=lambda found: found.offset):
        wish = _of_access(image, access)
        if wish is not None:
            yield wish


def domain_rights(domain: str, *, home: bool, governance: bool) -> frozenset[Binding]:
    """A domain owns what carries its prefix at home, and takes part in the governance log."""
    prefix, everything = f"{domain}.", Operation.ALL
    found: set[Binding] = {Binding(domain, everything, Resource.GROUP, prefix, prefixed=True)}
    if home:
        found |= {
            Binding(domain, everything, Resource.TOPIC, prefix, prefixed=True),
            Binding(domain, everything, Resource.TRANSACTIONAL_ID, prefix, prefixed=True),
        }
    if governance:
        found |= {
            Binding(domain, Operation.READ, Resource.TOPIC, "mesh.", prefixed=True),
            Binding(domain, Operation.WRITE, Resource.TOPIC, topics.GOVERNANCE),
        }
    return frozenset(found)


def _of_domain(image: Image, domain: Domain) -> Iterator[Wish]:
    governance = image.identity.governance_cluster
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
            wanted=True,
            reported=domain.rights.get(cluster) == domain.generation,
        )


def _of_application(image: Image, application: Application) -> Wish:
    home = image.identity.domains[application.id.partition(".")[0]].cluster
    prefix = f"{application.id}."
    return Wish(
        subject=f"application/{application.id}",
        cluster=home,
        generation=application.generation,
        correlation=application.id,
        principal=application.id,
        bindings=frozenset(
            {Binding(application.id, Operation.READ, Resource.GROUP, prefix, prefixed=True)}
        ),
        wanted=True,
        reported=application.rights.get(home) == application.generation,
    )


def _of_access(image: Image, access: Access) -> Wish | None:
    """A grant is applied once there is something to read; a revocation is applied at once."""
    entitled = access.state in ENTITLED
    if not entitled and access.state is not State.REVOKING:
        return None
    if entitled and access.link is not None:
        link = image.links.get(access.link)
        if link is None or link.copy is not Copy.PRESENT:
            return None
    return Wish(
        subject=access.request,
        cluster=access.cluster,
        generation=access.generation,
        correlation=access.request,
        principal=access.application,
        bindings=reader(access.application, access.topic),
        wanted=entitled,
        reported=access.state is State.ACTIVE,
    )


class RightsKeeper:
    """Grants what is missing, withdraws what was revoked, and reports what it saw."""

    name = "rights"

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters

    def reconcile(self, image: Image, reign: Reign) -> None:
        """Compare and repair once; revocations come first."""
        wishes = list(desired(image))
        keep = {(wish.cluster, right) for wish in wishes if wish.wanted for right in wish.bindings}
        for wish in sorted(wishes, key=lambda wish: wish.wanted):
            try:
                admin = self._clusters(image, wish.cluster)
                if wish.wanted:
                    self._grant(wish, admin, reign)
                else:
                    self._withdraw(wish, admin, reign, keep)
            except MeshError as error:
                log.warning(
                    "rights_not_changed",
                    subject=wish.subject,
                    cluster=wish.cluster,
                    error=str(error),
                )

    def _grant(self, wish: Wish, admin: ClusterAdmin, reign: Reign) -> None:
        missing = wish.bindings - admin.rights(principal=wish.principal)
        if missing:
            reign.check()
            admin.grant(sorted(missing))
            missing = wish.bindings - admin.rights(principal=wish.principal)
        crash_point("after-effect")
        if missing or wish.reported:
            return
        reign.report(
            AclApplied(
                meta=reign.meta(
                    wish.subject,
                    f"acl-applied-{wish.cluster}",
                    wish.generation,
                    correlation=wish.correlation,
                ),
                subject=wish.subject,
                cluster=wish.cluster,
                generation=wish.generation,
                bindings=[str(binding) for binding in sorted(wish.bindings)],
            )
        )

    def _withdraw(
        self,
        wish: Wish,
        admin: ClusterAdmin,
        reign: Reign,
        keep: set[tuple[str, Binding]],
    ) -> None:
        """Withdraw what no other wish of the same principal still wants."""
        unwanted = {right for right in wish.bindings if (wish.cluster, right) not in keep}
        present = unwanted & admin.rights(principal=wish.principal)
        if present:
            reign.check()
            admin.withdraw(sorted(present))
            present = unwanted & admin.rights(principal=wish.principal)
        crash_point("after-effect")
        if present:
            return
        reign.report(
            AclRemoved(
                meta=reign.meta(
                    wish.subject,
                    f"acl-removed-{wish.cluster}",
                    wish.generation,
                    correlation=wish.correlation,
                ),
                subject=wish.subject,
                cluster=wish.cluster,
                generation=wish.generation,
                bindings=[str(binding) for binding in sorted(unwanted)],
            )
        )
