"""How the rights on a cluster differ from what the log calls for. Pure.

Comes in: wishes and scene of an image, and the ACLs as a cluster lists them. Goes out: findings,
which the rights keeper acts on and `sdm drift` shows. What the mesh can explain is no finding;
neither is a stranger's right on a stranger's topic.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from mesh_events.facts import DriftKind
from processors.connect.principals import OFFSETS, PRINCIPALS, principal_of
from processors.rights import EVERYBODY, Acl, Binding, Resource, Wish
from projections.connectors import Connector
from projections.image import Image
from projections.links import Copy, Desired, Link
from projections.statements import Statement

RIGHTS = frozenset({DriftKind.RIGHT_MISSING, DriftKind.RIGHT_RETURNED})
"""What is compared with a wish."""
STRANGE = frozenset({DriftKind.UNGRANTED_RIGHT, DriftKind.FOREIGN_RIGHT, DriftKind.FOREIGN_DENIAL})
"""What no wish calls for."""
_HARMFUL = frozenset({"all", "read", "write", "alter", "alter-configs", "delete"})
"""What lets somebody see or change a topic, its records or its settings."""
_DESCRIBES = frozenset({"read", "write", "delete", "alter"})
"""What includes DESCRIBE, as Kafka's authorizer has it."""
_WRITER = re.compile(r"mesh\.(?:link|sql)\.(?P<flow>.+)\.[0-9a-f]{8}")
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
    """ACLs of one principal that differ in one way, with some of the mesh's topics they touch."""

    kind: DriftKind
    cluster: str
    subject: str
    generation: int
    principal: str
    acls: frozenset[Acl]
    topics: tuple[str, ...]

    @property
    def bindings(self) -> list[str]:
        """The ACLs, a line each, in order."""
        return [str(acl) for acl in sorted(self.acls)]


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


def wrong(wish: Wish, actual: Iterable[Binding], keep: set[tuple[str, Binding]]) -> set[Binding]:
    """Bindings that are missing, or there though unwanted.

    Args:
        wish: what should be.
        actual: what is there.
        keep: (cluster, binding) of every wanted wish: what another one needs stays.
    """
    if wish.wanted:
        return set(wish.bindings) - set(actual)
    return {right for right in wish.bindings if (wish.cluster, right) not in keep} & set(actual)


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
        gone = link.copy is Copy.PURGED and link.desired is Desired.REMOVED
        if link.cluster == cluster and not gone:
            yield link.topic


def _named(own: Iterable[Binding]) -> Iterator[str]:
    """The mesh's own topics: each is named by the right of somebody to write it."""
    for right in own:
        if right.resource is Resource.TOPIC and not right.prefixed:
            yield right.name


def of_strangers(seen: Scene, image: Image, acls: Iterable[Acl]) -> Iterator[Finding]:
    """Rights and denials that the log does not explain, one finding for a principal and a kind."""
    jobs = _Jobs.of(image, seen.cluster)
    kinds: dict[tuple[str, DriftKind], set[Acl]] = {}
    known = {Acl.of(binding) for binding in seen.known}
    for acl in acls:
        kind = _kind(acl, seen, jobs, known)
        if kind is not None:
            kinds.setdefault((acl.principal, kind), set()).add(acl)
    for (principal, kind), found in sorted(kinds.items()):
        touched = sorted({topic for acl in found for topic in _touched(acl, seen.topics)})
        yield Finding(
            kind=kind,
            cluster=seen.cluster,
            subject=f"principal/{shortened(principal)}",
            generation=-1,
            principal=principal,
            acls=frozenset(found),
            topics=tuple(touched[:_MOST_TOPICS]),
        )


def _kind(acl: Acl, seen: Scene, jobs: "_Jobs", known: set[Acl]) -> DriftKind | None:
    """What is strange about an ACL; None if the log explains it or it is not about the mesh."""
    if acl.denies:
        shuts_out = any(_denies(acl, right) for right in known)
        return DriftKind.FOREIGN_DENIAL if shuts_out else None
    # most of a cluster's rights are those that the log knows: they cost one look
    if acl in known or acl.resource != "topic" or acl.operation not in _HARMFUL:
        return None
    if not _touched(acl, seen.topics):
        return None
    if any(_includes(right, acl) for right in known) or acl.binding() in seen.unwanted:
        return None
    if jobs.explain(acl):
        return None
    owned = acl.principal in seen.owned or jobs.owns(acl.principal)
    return DriftKind.UNGRANTED_RIGHT if owned else DriftKind.FOREIGN_RIGHT


@dataclass(frozen=True, slots=True)
class _Jobs:
    """What runs on a cluster: link or statement -> its topics there; principal -> connector."""

    flows: Mapping[str, frozenset[str]]
    connectors: Mapping[str, Connector]

    @classmethod
    def of(cls, image: Image, cluster: str) -> Self:
        """Those of an image."""
        flows: list[Link | Statement] = [*image.links.values(), *image.statements.values()]
        ends = {
            flow.id: frozenset(
                topic
                for place, topics in (
                    (flow.source_cluster, flow.reads),
                    (flow.cluster, flow.writes),
                )
                for topic in topics
                if place == cluster
            )
            for flow in flows
        }
        connectors = {
            principal_of(one.id): one
            for one in image.connectors.values()
            if one.cluster == cluster and one.desired is Desired.RUNNING
        }
        return cls(ends, connectors)

    def explain(self, acl: Acl) -> bool:
        """Whether an ACL is one that a keeper gives to what runs: it looks after it, too."""
        connector = self.connectors.get(acl.principal)
        if connector is not None and acl.prefixed:
            return not connector.is_sink and acl.name == f"{connector.domain}."
        if connector is not None:
            own = f"{connector.domain}.{OFFSETS}"
            return acl.name in (*connector.reads, *connector.writes, own)
        return not acl.prefixed and acl.name in self.flows.get(_flow_of(acl.principal), ())

    def owns(self, principal: str) -> bool:
        """Whether a principal is one that the mesh made for something that runs, or ran."""
        return _flow_of(principal) in self.flows or principal.startswith(PRINCIPALS)


def _flow_of(principal: str) -> str:
    """The link or statement that a principal writes for; empty for others."""
    writer = _WRITER.fullmatch(principal)
    return writer["flow"] if writer else ""


def repairable(finding: Finding, seen: Scene) -> list[Binding]:
    """What of a finding the mesh may withdraw: its own principal's rights on the mesh's topics.

    A wider pattern is also about topics that are not the mesh's, and a stranger's right is a
    stranger's: both stay. Of a connector the mesh has given all, the wide ones too.
    """
    if finding.kind is not DriftKind.UNGRANTED_RIGHT:
        return []
    connectors = finding.principal.startswith(PRINCIPALS)
    bindings = [acl.binding() for acl in finding.acls if connectors or not acl.prefixed]
    return sorted(
        one for one in bindings if one is not None and (one.prefixed or one.name in seen.topics)
    )


def shortened(text: str, most: int = 200) -> str:
    """A text that the log can keep; a longer one ends in a digest that tells it from others."""
    if len(text) <= most:
        return text
    return f"{text[: most - 17]}~{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _touched(acl: Acl, topics: frozenset[str]) -> frozenset[str]:
    """Those of the topics that an ACL on topics or on anything else is about."""
    if acl.resource != "topic":
        return frozenset()
    if not acl.prefixed and acl.name != EVERYBODY:
        return topics & {acl.name}
    return frozenset(topic for topic in topics if acl.covers(topic))


def _includes(right: Acl, acl: Acl) -> bool:
    """Whether a known right lets the principal do all that the ACL does."""
    if (right.principal, right.resource) != (acl.principal, acl.resource):
        return False
    if right.operation not in ("all", acl.operation):
        return False
    narrow = acl.prefixed or acl.name != EVERYBODY
    return right.covers(acl.name) and narrow and (right.prefixed or not acl.prefixed)


def _denies(denial: Acl, right: Acl) -> bool:
    """Whether a denial takes away something of a known right."""
    if denial.principal not in (EVERYBODY, right.principal) or denial.resource != right.resource:
        return False
    same = denial.operation in ("all", right.operation) or right.operation == "all"
    described = denial.operation == "describe" and right.operation in _DESCRIBES
    overlap = denial.covers(right.name) or (right.prefixed and right.covers(denial.name))
    return overlap and (same or described)
