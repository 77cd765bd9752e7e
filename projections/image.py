"""The state of the whole mesh after one record of the log; `fold.py` makes the next one."""

from typing import NamedTuple

from immutables import Map

from mesh_events import intents
from mesh_events.decisions import IDS_PER_DOMAIN, UNDECIDED_PER_DOMAIN
from projections import access, catalog, drift, links, statements
from projections.access import Accesses
from projections.catalog import Catalog
from projections.connectors import state, table_use, task_use
from projections.connectors.state import Connectors
from projections.connectors.table_use import TableUse
from projections.connectors.task_use import TaskUse
from projections.deciding import intents as pending
from projections.deciding.intents import Intents
from projections.drift import Drifts
from projections.identity import Identity
from projections.lineage import steps, topic_use
from projections.lineage.steps import Replaced
from projections.lineage.topic_use import TopicUse
from projections.links import Links
from projections.quotas.kinds import DEFAULT_QUOTAS, Counts, Quotas
from projections.statements import Statements
from projections.table import Table

RowKey = tuple[str, str]
"""(row topic, row key)."""


class Bounds(NamedTuple):
    """How much a party may have: undecided intents, remembered ids of intents, things by kind."""

    undecided: int = UNDECIDED_PER_DOMAIN
    ids: int = IDS_PER_DOMAIN
    quotas: Quotas = DEFAULT_QUOTAS


DEFAULT_BOUNDS = Bounds()
MESH_BOUNDS = Bounds(100_000, 1_000_000)
"""Those of the operator's records, and of the controllers'; no setting makes them smaller."""
TOLERANCE_MS = 60 * 1000
"""How far append times may be off the mesh's clock before one of them is taken for wrong."""


class Image(NamedTuple):
    """Everything the log has said up to and including `offset`.

    `clock` is the mesh's time (ms) of the last decision that counted: it never goes back. `skew` is
    how far append times are ahead of it (ms): that decision's, or a later record's that is earlier.
    `worker_skew` is how far the clock of the governor's machine was ahead (ms). `agreed` is the
    mesh's time (ms) of the last decision at which the clocks agreed. `time` is the
    mesh's time of the last record: a decision's own clock, and for other records their append time
    without the skew.
    `epoch` is the offset of the latest GovernorStarted, -1 before the first; `starts` maps the ids
    of all of them to their offsets; `last_decision` is the id of the decision that counted last in
    this epoch, or of its start. `ignored` counts decisions that came under an old epoch, twice, or
    behind a lost one. `bounds` are those of the latest start, `counts` what each domain has.
    `carried` has the product of each topic that carries one.
    `table_use` has the databases' tables that connectors use, with whose connectors they are,
    `topic_use` the topics that connectors and statements fill, `task_use` the tasks of each
    domain's connectors.
    `touched` names the rows that the last applied record may have changed.

    A tuple, since a changed copy of it is made for every record: that takes a fifth of the time.
    """

    offset: int = -1
    time: int = 0
    clock: int = 0
    skew: int = 0
    worker_skew: int = 0
    agreed: int = 0
    epoch: int = -1
    last_decision: str = ""
    starts: Table[str, int] = Map()
    ignored: int = 0
    schemas: Table[int, str] = Map()
    identity: Identity = Identity()
    catalog: Catalog = catalog.EMPTY
    carried: Table[str, str] = Map()
    access: Accesses = access.EMPTY
    links: Links = links.EMPTY
    statements: Statements = statements.EMPTY
    connectors: Connectors = state.EMPTY
    replaced: Replaced = steps.EMPTY
    intents: Intents = pending.EMPTY
    drifts: Drifts = drift.EMPTY
    touched: tuple[RowKey, ...] = ()
    bounds: Bounds = DEFAULT_BOUNDS
    counts: Counts = Map()
    table_use: TableUse = table_use.EMPTY
    topic_use: TopicUse = topic_use.EMPTY
    task_use: TaskUse = task_use.EMPTY

    @property
    def clocks_disagree(self) -> bool:
        """Whether broker or governor's machine differ by more than `TOLERANCE_MS`.

        Nothing further expires then.
        """
        return max(abs(self.skew), abs(self.worker_skew)) > TOLERANCE_MS

    def ended_by(self, time: int) -> int:
        """The time (ms) by which freezes have ended, asked at `time` of the mesh's clock.

        While clocks disagree no further one ends: those stay ended that had when they last agreed.
        """
        return min(time, self.agreed) if self.clocks_disagree else time

    def latest(self, time: int) -> int:
        """What the clock that is ahead of the others shows at `time` of the mesh's clock, ms.

        Whichever of them is wrong, what is counted from there lasts as long as was asked for.
        """
        return time + max(0, self.skew, self.worker_skew) if self.clocks_disagree else time


EMPTY = Image()


def reading_place(image: Image, product_id: str, application: str) -> access.Place:
    """Where `application` would read the product: at home, over a link if the product is elsewhere.

    Both must exist in the image.
    """
    product = image.catalog[product_id]
    home = image.identity.domains[intents.domain_of(application)].cluster
    if home == product.cluster:
        return access.Place(home, product.topic, None)
    return access.Place(home, links.destination_topic(product), links.link_id(product_id, home))


def purge_policy(image: Image, link: str) -> intents.OnRevoke:
    """PURGE if one grant since the link was made said so, or if none said anything."""
    since = image.links[link].created_generation if link in image.links else 0
    policies = {
        found.on_revoke
        for found in image.access.of_link(link)
        # a grant of an earlier life of the link has not changed since; it has no say
        if found.state in access.ENTITLED or found.changed > since
    }
    purge, retain = intents.OnRevoke.PURGE, intents.OnRevoke.RETAIN
    return purge if purge in policies or not policies else retain
