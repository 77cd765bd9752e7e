"""Who can read a product, in its own topic and in its copies, and by what right. Pure.

Read off the image, so that it can be asked of any moment. What the log does not know is not here:
administrators of a cluster read everything on it, and what somebody allowed behind the mesh's back
is drift.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from projections.access import ENTITLED, Access, State
from projections.catalog import Product
from projections.connectors.state import Connector
from projections.identity import Application, Domain
from projections.image import Image
from projections.lineage.runs import End, open_run
from projections.lineage.sources import not_granted
from projections.lineage.steps import Place
from projections.links import Copy, Desired, Link
from projections.statements import Statement

RUNS_ON = frozenset(
    {
        "cluster_unavailable",
        "engine_starting",
        "engine_unavailable",
        "no_schema",
        "query_stalled",
        "source_missing",
        "table_recreated",
        "unexpected_error",
    }
)
"""Failures of links and statements whose query may live on: nothing was stopped before they were
told."""
STOPPED = frozenset(
    {
        "domain_quarantined",
        "keys_moved",
        "partitions_added",
        "source_missing",
        "source_not_granted",
        "source_recreated",
    }
)
"""Failures of connectors before which they were stopped: of others tasks may run on."""
_THERE = frozenset({Copy.PRESENT, Copy.RETAINED})


class Via(StrEnum):
    """By what right somebody reads."""

    DOMAIN = "domain"
    OWN = "application"
    GRANT = "grant"
    STATEMENT = "statement"
    CONNECTOR = "connector"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who reads a topic, or has rights to.

    principal: login at the cluster, None of a job that has not started
    entitled: whether what was decided lets it read
    enforced: whether the log says that the right is there; of a job, that it runs or may not have
        been stopped yet
    right: id of what gives the right: a domain, a request, a job
    offset: generation of that right on the log
    access: the request, where the right is a grant
    """

    principal: str | None
    via: Via
    place: Place
    entitled: bool
    enforced: bool
    right: str
    offset: int
    state: str = ""
    application: str | None = None
    access: Access | None = None

    @property
    def can_read(self) -> bool:
        """Whether it may read, or may still have the right that it lost.

        Of a grant that ends nobody knows before its right was seen gone: a worker may have given it
        just before it died.
        """
        ends = self.access is not None and (
            self.access.state is State.REVOKING or self.access.withdrawing
        )
        return self.entitled or self.enforced or ends


def readers(image: Image, product: Product) -> list[Reader]:
    """Everybody who can read a product's topic or a copy of it."""
    found: list[Reader] = []
    home, *copies = places(image, product)
    for place in (home, *copies):
        found += _owners(image, place)
        found += _jobs(image, place)
    found += _granted(image, product)
    found += _links(image, product, home)
    return [one for one in found if one.can_read]


def places(image: Image, product: Product) -> list[Place]:
    """Where its data lies: its own topic first, then each copy."""
    copies = (
        (one.cluster, one.topic)
        for _, one in sorted(image.links.items())
        if one.product == product.id and one.copy in _THERE
    )
    return [(product.cluster, product.topic), *copies]


def _owners(image: Image, place: Place) -> Iterator[Reader]:
    """A domain reads what carries its name on its home cluster, and so do its applications."""
    identity = image.identity
    for name, domain in sorted(identity.domains.items()):
        if domain.cluster != place[0] or not place[1].startswith(f"{name}."):
            continue
        entitled = name not in identity.quarantines
        yield _owner(Via.DOMAIN, name, domain, place, name, entitled=entitled)
        for identity_of, one in sorted(identity.applications.items()):
            if identity_of.partition(".")[0] == name:
                yield _owner(Via.OWN, identity_of, one, place, name, entitled=entitled)


def _owner(
    via: Via, principal: str, one: Domain | Application, place: Place, right: str, *, entitled: bool
) -> Reader:
    enforced = place[0] in one.rights
    return Reader(principal, via, place, entitled, enforced, right, one.generation)


def is_entitled(image: Image, access: Access) -> bool:
    """Whether a grant gives its application the right to read now, once there is a copy.

    Not in a quarantine of its domain, and not after somebody deleted the link.
    """
    link = image.links.get(access.link or "")
    removed = link is not None and link.desired is Desired.DELETED
    cut_off = access.consumer in image.identity.quarantines
    return access.state in ENTITLED and not cut_off and not removed


def _granted(image: Image, product: Product) -> Iterator[Reader]:
    requests = [one for one in image.access.requests.values() if one.product == product.id]
    for one in sorted(requests, key=lambda found: found.offset):
        link = image.links.get(one.link or "")
        copied = one.link is None or (link is not None and link.copy is Copy.PRESENT)
        entitled = copied and is_entitled(image, one)
        yield Reader(
            one.application,
            Via.GRANT,
            (one.cluster, one.topic),
            entitled,
            one.is_enforced,
            one.request,
            one.generation,
            one.state,
            one.application,
            one,
        )


def _jobs(image: Image, place: Place) -> Iterator[Reader]:
    """Statements and sinks that read a topic, as their domain or by an application's grant."""
    kinds = (
        (Via.STATEMENT, sorted(image.statements.items())),
        (Via.CONNECTOR, sorted(image.connectors.items())),
    )
    for via, jobs in kinds:
        for name, one in jobs:
            reads = place[1] in one.reads
            if one.cluster != place[0] or not (reads or _still_reads(one, place[1])):
                continue
            denied = not_granted(image, one.domain, one.application, one.cluster, [place[1]])
            cut_off = one.domain in image.identity.quarantines
            entitled = reads and one.stands and not denied and not cut_off
            yield Reader(
                one.principal,
                via,
                place,
                entitled,
                _may_run(one),
                name,
                one.generation,
                one.state,
                one.application,
            )


def _still_reads(job: Statement | Connector, topic: str) -> bool:
    """Whether what runs is an earlier text with that table, or an earlier config; streams stay."""
    read = job.table_topic_ids if isinstance(job, Statement) else job.reading
    return topic in read and _may_run(job)


def _links(image: Image, product: Product, home: Place) -> Iterator[Reader]:
    """What copies a product reads it at its source."""
    for name, one in sorted(image.links.items()):
        if one.product == product.id:
            yield Reader(
                one.principal,
                Via.LINK,
                home,
                one.desired is Desired.RUNNING,
                _may_run(one),
                name,
                one.generation,
                one.state,
            )


def _may_run(job: Link | Statement | Connector) -> bool:
    """Whether a job may be running: from its start until the log says that it stands still.

    One that was stopped while it was starting may have started.
    """
    if job.state == "ACTIVE" or open_run(job) is not None:
        return True
    if job.desired is Desired.RUNNING:
        if isinstance(job, Connector):
            return job.failure_code is not None and job.failure_code not in STOPPED
        return job.failure_code in RUNS_ON
    if job.is_at_rest or job.is_over:
        return False
    # a link that is to go was stopped before its copy goes
    last = job.ended[-1] if job.ended else None
    stopped = last is not None and last.end is End.COMPLETE and last.offset > job.generation
    return not stopped
