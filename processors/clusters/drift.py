"""How the rights on a cluster differ from what the log calls for. Pure.

Comes in: wishes and scene of an image, and the ACLs as a cluster lists them. Goes out: findings,
which the rights controller acts on and `sdm drift` shows. What the mesh can explain is no finding;
neither is a stranger's right on a stranger's topic.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from mesh_events.facts import DriftKind
from mesh_events.meta import spelt
from processors.acls.protected import HARMFUL, PATTERNED, UNUSED, Protected, within
from processors.acls.running import Known, Running
from processors.clusters.rights import EVERYBODY, Acl, Binding, Resource, Wish
from processors.connect.principals import PRINCIPALS, offsets_of
from projections.image import Image
from projections.links import Copy, Desired

RIGHTS = frozenset({DriftKind.RIGHT_MISSING, DriftKind.RIGHT_RETURNED})
"""What is compared with a wish."""
STRANGE = frozenset({DriftKind.UNGRANTED_RIGHT, DriftKind.FOREIGN_RIGHT, DriftKind.FOREIGN_DENIAL})
"""What no wish calls for."""
TOPICS = frozenset({DriftKind.TOPIC_MISSING})
"""What is compared with the catalog."""
_DESCRIBES = frozenset({"read", "write", "delete", "alter"})
"""What includes DESCRIBE, as Kafka's authorizer has it."""
_MOST_TOPICS = 20


class Policy(StrEnum):
    """What is done about rights that somebody changed behind the mesh's back.

    `repair` makes them as the log says, `report` only tells. What the log itself orders is done
    under both, and strangers' rights stay under both.
    """

    REPAIR = "repair"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class Finding:
    """ACLs of one principal that differ in one way, with some of the mesh's topics they touch.

    `owned` are ACLs of a principal that the mesh made, about nothing that is not the mesh's.
    """

    kind: DriftKind
    cluster: str
    subject: str
    generation: int
    principal: str
    acls: frozenset[Acl]
    topics: tuple[str, ...]
    owned: frozenset[Acl] = frozenset()

    @property
    def repairable(self) -> list[Acl]:
        """The ACLs that the mesh may withdraw: its own principals', on what is the mesh's.

        A wider pattern is also about topics or groups that are not the mesh's, and a stranger's
        right is a stranger's: both stay. Of a connector the mesh has given all, the wide ones too.
        """
        return sorted(self.acls & self.owned)

    @property
    def bindings(self) -> list[str]:
        """The ACLs, a line each, in order."""
        return [str(acl) for acl in sorted(self.acls)]


Held = Mapping[tuple[str, str], AbstractSet[Acl]]
"""(principal, kind of resource) -> what the log lets it do there."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What the image says about one cluster.

    Args:
        cluster: its name.
        topics: the mesh's topics there: of products, copies, and its own.
        known: what principals may do there, because the log says so.
        owned: principals that the mesh has made.
        unwanted: rights that the log calls off; they are compared as wishes.
    """

    cluster: str
    topics: frozenset[str]
    known: frozenset[Binding]
    owned: frozenset[str]
    unwanted: frozenset[Binding]


def wrong(wish: Wish, actual: AbstractSet[Binding], keep: set[tuple[str, Binding]]) -> set[Binding]:
    """Bindings that are missing, or there though unwanted.

    Args:
        wish: what should be.
        actual: what is there.
        keep: (cluster, binding) of every wanted wish: what another one needs stays.
    """
    if wish.wanted:
        return {right for right in wish.bindings if right not in actual}
    return {
        right for right in wish.bindings if right in actual and (wish.cluster, right) not in keep
    }


def of_wish(wish: Wish, bindings: Iterable[Binding]) -> Finding:
    """The finding that these bindings of a wish are not as the log says."""
    found = frozenset(Acl.of(binding) for binding in bindings)
    return Finding(
        kind=DriftKind.RIGHT_MISSING if wish.wanted else DriftKind.RIGHT_RETURNED,
        cluster=wish.cluster,
        subject=wish.subject,
        generation=wish.generation,
        principal=wish.principal,
        acls=found,
        topics=tuple(sorted({acl.name for acl in found if acl.resource == "topic"})),
    )


def of_wishes(wishes: Iterable[Wish], acls: Iterable[Acl]) -> Iterator[Finding]:
    """What differs from the wishes on one cluster, where the log says that it was so already."""
    here = list(wishes)
    actual = {binding for acl in acls if (binding := acl.binding()) is not None}
    keep = {(wish.cluster, right) for wish in here if wish.wanted for right in wish.bindings}
    for wish in here:
        if wish.reported and (found := wrong(wish, actual, keep)):
            yield of_wish(wish, found)


def scene(image: Image, cluster: str, wishes: Iterable[Wish], own: Iterable[Binding] = ()) -> Scene:
    """What the image says about a cluster.

    Args:
        image: of now.
        cluster: its name.
        wishes: all that follow from the image, of any cluster.
        own: rights of the mesh's own principals on the governance cluster.
    """
    here = [wish for wish in wishes if wish.cluster == cluster]
    mesh = frozenset(own) if cluster == image.identity.governance_cluster else frozenset()
    wanted = frozenset(right for wish in here if wish.wanted for right in wish.bindings)
    return Scene(
        cluster=cluster,
        topics=frozenset({*_topics(image, cluster), *_named(mesh)}),
        known=wanted | mesh,
        owned=frozenset(principal for principal, _ in image.identity.credentials),
        unwanted=frozenset(right for wish in here if not wish.wanted for right in wish.bindings)
        - wanted,
    )


def _topics(image: Image, cluster: str) -> Iterator[str]:
    for product in image.catalog.values():
        if product.cluster == cluster:
            yield product.topic
    for link in image.links.values():
        gone = link.copy is Copy.PURGED and link.desired is Desired.DELETED
        if link.cluster == cluster and not gone:
            yield link.topic
    for connector in image.connectors.values():
        if connector.cluster == cluster and not connector.is_sink:
            yield offsets_of(connector.domain)


def _named(own: Iterable[Binding]) -> Iterator[str]:
    """The mesh's own topics: each is named by the right of somebody to write it."""
    for right in own:
        if right.resource is Resource.TOPIC and not right.prefixed:
            yield right.name


def unexpected(
    seen: Scene, image: Image, acls: Iterable[Acl], starts: Known | None = None
) -> Iterator[Finding]:
    """Rights and denials that the log does not explain, one finding for a principal and a kind.

    starts: those of this process, which the log does not know yet; see `Running`.
    """
    running, listed = Running(image, seen.cluster, starts), list(acls)
    kinds: dict[tuple[str, DriftKind], set[Acl]] = {}
    known = {Acl.of(binding) for binding in seen.known}
    explained = {acl for acl in listed if not acl.denies and running.explain(acl)}
    protected = _protected(seen, chain(known, explained))
    held = _by_holder(known)
    for acl in listed:
        if acl.denies:
            shuts_out = any(_denies(acl, right) for right in chain(known, explained))
            kind = DriftKind.FOREIGN_DENIAL if shuts_out else None
        else:
            kind = None if acl in explained else _kind(acl, seen, running, held, protected)
        if kind is not None:
            kinds.setdefault((acl.principal, kind), set()).add(acl)
    for (principal, kind), found in sorted(kinds.items()):
        touched = sorted({topic for acl in found for topic in protected.touched(acl)})
        yield Finding(
            kind=kind,
            cluster=seen.cluster,
            subject=f"principal/{shortened(principal)}",
            generation=-1,
            principal=principal,
            acls=frozenset(found),
            topics=tuple(touched[:_MOST_TOPICS]),
            owned=frozenset(acl for acl in found if _is_owned(acl, kind, protected)),
        )


def _is_owned(acl: Acl, kind: DriftKind, protected: Protected) -> bool:
    if kind is not DriftKind.UNGRANTED_RIGHT:
        return False
    return protected.holds(acl) or (acl.prefixed and acl.principal.startswith(PRINCIPALS))


def _protected(seen: Scene, explained: Iterable[Acl]) -> Protected:
    """What of the cluster is the mesh's: its topics, and what its principals use for themselves."""
    rights = list(explained)
    return Protected(
        topics=seen.topics,
        patterns=tuple(acl for acl in rights if acl.resource in PATTERNED),
        users=seen.owned.union(acl.principal for acl in rights),
    )


def _kind(
    acl: Acl, seen: Scene, running: Running, held: Held, protected: Protected
) -> DriftKind | None:
    """What is strange about a right that nothing that runs explains; None if nothing is."""
    # most of a cluster's rights are those that the log knows: they cost one look
    known = held.get((acl.principal, acl.resource), ())
    if acl in known:
        return None
    owned = acl.principal in seen.owned or running.owns(acl.principal)
    harms = acl.operation in HARMFUL.get(acl.resource, ()) or (owned and acl.resource in UNUSED)
    if not harms or not protected.is_about(acl):
        return None
    if any(_includes(right, acl) for right in known) or acl.binding() in seen.unwanted:
        return None
    return DriftKind.UNGRANTED_RIGHT if owned else DriftKind.FOREIGN_RIGHT


def shortened(text: str, most: int = 200) -> str:
    """A text that the log can keep; a longer one ends in a digest that tells it from others."""
    text = spelt(text)
    if len(text) <= most:
        return text
    return f"{text[: most - 17]}~{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _by_holder(known: Iterable[Acl]) -> Held:
    found: dict[tuple[str, str], set[Acl]] = {}
    for right in known:
        found.setdefault((right.principal, right.resource), set()).add(right)
    return found


def _includes(right: Acl, acl: Acl) -> bool:
    """Whether a known right lets its principal do all that an ACL of theirs does."""
    if right.operation not in ("all", acl.operation):
        return False
    return within(acl, right)


def _denies(denial: Acl, right: Acl) -> bool:
    """Whether a denial takes away something of a known right."""
    if denial.principal not in (EVERYBODY, right.principal) or denial.resource != right.resource:
        return False
    same = denial.operation in ("all", right.operation) or right.operation == "all"
    described = denial.operation == "describe" and right.operation in _DESCRIBES
    overlap = denial.covers(right.name) or (right.prefixed and right.covers(denial.name))
    return overlap and (same or described)
