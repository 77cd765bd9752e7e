"""The copies of products in other clusters."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from immutables import Map

from mesh_events.facts import (
    CopyPurged,
    CopyRetained,
    LinkActivated,
    LinkAdvanced,
    LinkFact,
    LinkFailed,
    LinkStopped,
)
from mesh_events.intents import Engine, LinkCreated, OnRevoke, domain_of
from mesh_events.meta import MESH_DOMAIN
from mesh_events.rows import LinkState
from projections.catalog import Product
from projections.copied_facts import remembered
from projections.lineage.runs import EndedRun, with_end
from projections.table import Table

State = LinkState


class Desired(StrEnum):
    """What a link should be doing."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    DELETED = "DELETED"


class Copy(StrEnum):
    """What is known of the data in the destination."""

    NONE = "NONE"
    PRESENT = "PRESENT"
    PURGED = "PURGED"
    RETAINED = "RETAINED"


@dataclass(frozen=True, slots=True)
class Link:
    """A copy of a product in another cluster.

    `positions` maps partition -> next source offset known to be safely behind us;
    `source_ends` maps partition -> source offset behind the last record that the source had when
    the link last started, empty before its first start in this life;
    `copied_from` and `copied_to` (ms of the log) tell the audit how long data was there.
    `told` holds the ids of the facts counted last at this generation: anybody can append a copy of
    one.
    The operator has stopped one that is `held`: nobody else can let it go on.
    `paused_by` is the domain that paused it, `mesh` for the operator; None where it is not paused.
    `activated` is the generation at which it last ran.
    """

    id: str
    product: str
    source_cluster: str
    source_topic: str
    cluster: str
    topic: str
    desired: Desired
    state: State
    generation: int
    created_generation: int
    created_at: int
    changed: int
    changed_at: int
    on_revoke: OnRevoke = OnRevoke.PURGE
    engine: Engine = Engine.SPARK
    copy: Copy = Copy.NONE
    incarnation: int = 0
    principal: str | None = None
    run: str | None = None
    source_topic_id: str | None = None
    destination_topic_id: str | None = None
    positions: Map[str, int] = field(default_factory=Map)
    source_ends: Map[str, int] = field(default_factory=Map)
    failure: str | None = None
    failure_code: str | None = None
    copied_from: int | None = None
    copied_to: int | None = None
    told: tuple[str, ...] = ()
    held: bool = False
    paused_by: str | None = None
    ended: tuple[EndedRun, ...] = ()
    activated: int | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        """Topics that are read, the source first."""
        return (self.source_topic,)

    @property
    def writes(self) -> tuple[str, ...]:
        """Topics that are written, the copy first."""
        return (self.topic,)

    @property
    def shown_state(self) -> str:
        """The state for people, with who paused it: `PAUSED by east`."""
        return f"{self.state} by {self.paused_by}" if self.paused_by else self.state.value

    @property
    def is_paused_by_reader(self) -> bool:
        """Whether it stands still for a consumer, and not for the product's owner or the mesh."""
        return self.paused_by not in (None, MESH_DOMAIN, domain_of(self.product))

    @property
    def missing(self) -> int:
        """Source offsets that the copy lacks of what the source held when the link last started."""
        at = self.positions
        return sum(max(0, end - at.get(p, 0)) for p, end in self.source_ends.items())

    @property
    def is_filled(self) -> bool:
        """Whether the copy has all that the source held when the link last started.

        That stays so until its next start; one that was created anew has not started yet.
        """
        return bool(self.source_ends) and self.missing == 0

    @property
    def is_active(self) -> bool:
        """Whether the log says that it runs."""
        return self.state is State.ACTIVE

    @property
    def is_at_rest(self) -> bool:
        """Whether the log says that it stands still as desired."""
        return self.state is State.PAUSED

    @property
    def is_over(self) -> bool:
        """Whether the log says that it is gone."""
        return self.state is State.DELETED


Links = Table[str, Link]
"""Link id -> link."""
EMPTY: Links = Map()


def link_id(product: str, cluster: str) -> str:
    """`east.users@west`: one link per product and target cluster."""
    return f"{product}@{cluster}"


def destination_topic(product: Product) -> str:
    """Name of a product's copy: the source's name, with the owning domain in front of it."""
    prefix = f"{product.domain}."
    return product.topic if product.topic.startswith(prefix) else prefix + product.topic


def created(
    links: Links,
    event: LinkCreated,
    product: Product,
    generation: int,
    time: int,
    *,
    by_operator: bool = False,
) -> Links:
    """A copy is wanted, for the first time or again."""
    identity = link_id(event.product, event.cluster)
    link = Link(
        id=identity,
        product=product.id,
        source_cluster=product.cluster,
        source_topic=product.topic,
        cluster=event.cluster,
        topic=destination_topic(product),
        desired=Desired.RUNNING,
        state=State.CREATED,
        generation=generation,
        created_generation=generation,
        created_at=time,
        changed=generation,
        changed_at=time,
        engine=event.engine,
    )
    before = links.get(identity)
    if before is not None:
        # what is known of the destination outlives a removal: the fence needs it
        link = replace(
            link,
            copy=before.copy,
            incarnation=before.incarnation,
            principal=before.principal,
            source_topic_id=before.source_topic_id,
            destination_topic_id=before.destination_topic_id,
            positions=before.positions,
            copied_from=before.copied_from,
            held=before.held and not by_operator,
            ended=before.ended,
        )
        if before.copy is Copy.PURGED:
            link = replace(link, destination_topic_id=None, positions=Map(), copied_from=None)
    return links.set(identity, link)


def redirected(
    links: Links,
    identity: str,
    desired: Desired,
    generation: int,
    time: int,
    on_revoke: OnRevoke = OnRevoke.PURGE,
    *,
    by_operator: bool = False,
) -> Links:
    """Somebody paused, resumed or deleted the link; what the operator stops is held."""
    waiting = {
        Desired.RUNNING: State.CREATED,
        Desired.PAUSED: State.PAUSING,
        Desired.DELETED: State.DELETING,
    }
    link = replace(
        links[identity],
        desired=desired,
        state=waiting[desired],
        generation=generation,
        changed=generation,
        changed_at=time,
        on_revoke=on_revoke,
        failure=None,
        failure_code=None,
        told=(),
        held=desired is not Desired.RUNNING if by_operator else links[identity].held,
        paused_by=links[identity].paused_by if desired is Desired.PAUSED else None,
    )
    return links.set(identity, link)


def paused(links: Links, identity: str, domain: str) -> Links:
    """A domain, or `mesh` for the operator, is who the link stands still for from now on."""
    return links.set(identity, replace(links[identity], paused_by=domain))


def taken_over(links: Links, identity: str, engine: Engine) -> Links:
    """Another engine copies from now on."""
    return links.set(identity, replace(links[identity], engine=engine))


def reported(links: Links, event: LinkFact, offset: int, time: int) -> Links:
    """A controller reported on a link; a report on an older generation changes nothing."""
    link = links.get(event.link)
    if link is None or link.generation != event.generation or event.meta.id in link.told:
        return links
    after = with_end(link, _reported(link, event, time), event, offset)
    if after == link:
        return links
    if not isinstance(event, LinkAdvanced):  # told often, and a copy of it moves nothing back
        after = replace(after, told=remembered(link.told, event.meta.id))
    return links.set(event.link, replace(after, changed=offset, changed_at=time))


def _reported(link: Link, event: LinkFact, time: int) -> Link:
    match event:
        case LinkActivated() if (
            # a late report must not name an old principal as the writer: the fence needs it
            link.desired is Desired.RUNNING and event.incarnation >= link.incarnation
        ):
            # positions of a destination that was deleted say nothing about a new one
            same = link.destination_topic_id in (None, event.destination_topic_id)
            known = link.positions if same else Map()
            return replace(
                link,
                state=State.ACTIVE,
                activated=link.generation,
                copy=Copy.PRESENT,
                incarnation=event.incarnation,
                principal=event.principal,
                run=event.run,
                source_topic_id=event.source_topic_id,
                destination_topic_id=event.destination_topic_id,
                positions=forward(known, event.positions),
                source_ends=Map(event.source_ends),
                failure=None,
                failure_code=None,
                copied_from=link.copied_from or time,
                copied_to=None,
            )
        case LinkAdvanced():
            # a copy of a fact on an earlier start says nothing about this one
            told = event.source_ends if event.incarnation == link.incarnation else {}
            return replace(
                link,
                positions=forward(link.positions, event.positions),
                source_ends=Map(told) if told else link.source_ends,
            )
        case LinkStopped() if link.desired is not Desired.RUNNING:
            paused = link.desired is Desired.PAUSED
            return replace(
                link,
                state=State.PAUSED if paused else link.state,
                failure=None if paused else link.failure,
                failure_code=None if paused else link.failure_code,
                positions=forward(link.positions, event.positions),
            )
        case LinkFailed():
            return replace(link, state=State.FAILED, failure=event.reason, failure_code=event.code)
        case CopyPurged() if link.desired is Desired.DELETED:
            gone = link.copied_to if link.copy is Copy.PURGED else time
            return replace(_removed(link), copy=Copy.PURGED, copied_to=gone)
        case CopyRetained() if link.desired is Desired.DELETED:
            return replace(_removed(link), copy=Copy.RETAINED)
    return link


def _removed(link: Link) -> Link:
    return replace(link, state=State.DELETED, failure=None, failure_code=None)


def forward(known: Map[str, int], reported: Mapping[str, int]) -> Map[str, int]:
    """Positions only ever go forward."""
    for partition, position in reported.items():
        if position > known.get(partition, -1):
            known = known.set(partition, position)
    return known
