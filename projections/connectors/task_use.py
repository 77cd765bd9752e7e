"""How many tasks the connectors of a domain may have: each costs Connect and a database."""

from typing import TYPE_CHECKING

from immutables import Map

from mesh_events.intents import domain_of
from mesh_events.rows import ConnectorRow
from projections.connectors import config
from projections.table import Table

if TYPE_CHECKING:
    from projections.connectors.state import Connector
    from projections.image import Image

TaskUse = Table[str, int]
"""Domain -> the tasks of all its connectors that are not gone."""
EMPTY: TaskUse = Map()


def tasks_of(one: "Connector | None") -> int:
    """How many tasks a connector may have; none where it is gone."""
    return 0 if one is None or one.is_over else config.tasks(one.config) or 1


def with_task_use(before: "Image", after: "Image") -> "Image":
    """The image after a record, with the tasks of the connectors that the record has changed."""
    known = after.task_use
    for topic, name in after.touched:
        if topic != ConnectorRow.topic:
            continue
        old, new = before.connectors.get(name), after.connectors.get(name)
        if more := tasks_of(new) - tasks_of(old):
            domain = domain_of(name)
            count = known.get(domain, 0) + more
            known = known.set(domain, count) if count else known.delete(domain)
    return after if known is after.task_use else after._replace(task_use=known)
