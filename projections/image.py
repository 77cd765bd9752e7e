"""The state of the whole mesh after one record of the log; `fold.py` makes the next one."""

from typing import NamedTuple

from immutables import Map

from mesh_events import intents
from projections import access, catalog, connectors, drift, links, statements
from projections import intents as pending
from projections.access import Accesses
from projections.catalog import Catalog
from projections.connectors import Connectors
from projections.drift import Drifts
from projections.identity import Identity
from projections.intents import Intents
from projections.links import Links
from projections.statements import Statements
from projections.table import Table

RowKey = tuple[str, str]
"""(row topic, row key)."""


class Image(NamedTuple):
    """Everything the log has said up to and including `offset`.

    `time` is the running maximum of append times in ms. `epoch` is the offset of the latest
    GovernorStarted, -1 before the first, and `epoch_time` its append time; `starts` maps the ids
    of all of them to their offsets. `ignored` counts decisions that came under an old epoch or
    twice. `touched` names the rows that the last applied record may have changed.

    A tuple, since a changed copy of it is made for every record: that takes a fifth of the time.
    """

    offset: int = -1
    time: int = 0
    epoch: int = -1
    epoch_time: int = 0
    starts: Table[str, int] = Map()
    ignored: int = 0
    schemas: Table[int, str] = Map()
    identity: Identity = Identity()
    catalog: Catalog = catalog.EMPTY
    access: Accesses = access.EMPTY
    links: Links = links.EMPTY
    statements: Statements = statements.EMPTY
    connectors: Connectors = connectors.EMPTY
    intents: Intents = pending.EMPTY
    drifts: Drifts = drift.EMPTY
    touched: tuple[RowKey, ...] = ()


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
        if found.granted_generation and (found.state in access.ENTITLED or found.changed > since)
    }
    purge, retain = intents.OnRevoke.PURGE, intents.OnRevoke.RETAIN
    return purge if purge in policies or not policies else retain
