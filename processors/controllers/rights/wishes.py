"""The rights that the image calls for or calls off, and whose they are. Pure."""

from collections.abc import Iterable, Iterator

from mesh_events import topics
from mesh_events.intents import intents_login
from processors.clusters.principals import Held, Holder
from processors.clusters.rights import Binding, Operation, Resource, Wish, reader
from projections.access import ENTITLED, Access, State
from projections.identity import Application, Domain
from projections.image import Image
from projections.lineage.sources import not_granted
from projections.links import Copy, Desired


def desired(image: Image) -> Iterator[Wish]:
    """Every right that the image calls for or calls off, domains and applications first."""
    yield from _of_owners(image)
    current, over = _in_question(image)
    yield from _of_accesses(image, [*current, *over])


def current(image: Image) -> Iterator[Wish]:
    """The same without the rights of grants that have ended, if they were seen gone."""
    yield from _of_owners(image)
    yield from _of_accesses(image, _in_question(image)[0])


def returned(image: Image, cluster: str, held: Held) -> list[Wish]:
    """Of those the ones on a cluster of which something is there all the same.

    That is a right of the application, or of a statement or connector of its domain. A domain may
    have a hundred thousand grants that have ended: each costs a comparison here.

    Args:
        image: of now.
        cluster: its name.
        held: whose the rights are that are there.
    """
    there = {*held.others, *((job.domain, right.name) for right, job in held.jobs)}
    over = (one for one in _in_question(image)[1] if one.cluster == cluster)
    found = [
        one
        for one in over
        if (one.application, one.topic) in there or (one.consumer, one.topic) in there
    ]
    return list(_of_accesses(image, found))


def may_not_read(image: Image, job: Holder, cluster: str, topic: str) -> bool:
    """Whether a statement or connector may not read a topic: not now, or not any more.

    Also one whose text has changed since: its last start may still read by the one before.
    """
    return job.cluster == cluster and (
        job.domain in image.identity.quarantines
        or not job.stands
        or topic not in job.reads
        or bool(not_granted(image, job.domain, job.application, cluster, [topic]))
    )


def _of_owners(image: Image) -> Iterator[Wish]:
    for _, domain in sorted(image.identity.domains.items()):
        yield from _of_domain(image, domain)
    for _, application in sorted(image.identity.applications.items()):
        yield _of_application(image, application)


def _of_accesses(image: Image, accesses: Iterable[Access]) -> Iterator[Wish]:
    for access in sorted(accesses, key=lambda one: one.offset):
        wish = _of_access(image, access)
        if wish is not None:
            yield wish


def _in_question(image: Image) -> tuple[list[Access], list[Access]]:
    """The accesses whose rights are to be looked at, and those that are over: seen gone.

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
    over = list[Access]()
    for access in ended.values():
        (over if _seen_gone(access) else found).append(access)
    return found, over


def domain_rights(domain: str, *, home: bool, governance: bool) -> frozenset[Binding]:
    """A domain owns what carries its prefix at home, and takes part in the governance log.

    Of groups it has what consumers need, and no settings: Kafka bounds neither their number nor
    their length, and a controller of Kafka that cannot write them down does not start again.
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
        if link is not None and link.desired is Desired.DELETED:
            # somebody deleted the link under the grant: its readers go before the copy does
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


def _seen_gone(access: Access) -> bool:
    """Whether the log says that the rights are gone."""
    withdrawn = access.state is not State.REVOKING and not access.withdrawing
    return withdrawn and not access.is_enforced
