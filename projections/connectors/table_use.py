"""Which domains' connectors use a table of a database, so that no two domains use the same one.

The index is kept as the log is folded: a record costs the tables of the connector that it changes,
and a rule the tables of the config that it judges.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from immutables import Map

from mesh_events.rows import ConnectorRow
from projections.connectors.settings import JDBC_SINK, POSTGRES
from projections.connectors.tables import JDBC, place_of, tables, targets
from projections.connectors.values import MOST_LISTED
from projections.table import Table, with_entry

if TYPE_CHECKING:
    from projections.connectors.state import Connector
    from projections.image import Image

Key = tuple[str, str, str]
"""(database, schema or what stands for several, table)."""
Users = Map[str, int]
"""Domain -> how many of its connectors."""
TableUse = Table[Key, Users]
EMPTY: TableUse = Map()


class Used(NamedTuple):
    """A table that a connector captures or fills.

    database: `postgresql://host:port/database`.
    is_pattern: whether a sink finds its schema by a pattern, in which _ is any one character.
    """

    database: str
    schema: str
    name: str
    is_pattern: bool = False

    @property
    def leaves(self) -> tuple[Key, ...]:
        """What stands in the index for it."""
        found = (self._key(self.schema), self._key(self._any))
        return (*found, self._key(self._patterns)) if self.is_pattern else found

    @property
    def finds(self) -> tuple[Key, ...]:
        """What of another domain's stands in its way.

        A pattern is compared by length alone, so that one look-up finds whatever it may match.
        """
        if self.is_pattern:
            return (self._key(self._any),)
        return (self._key(self.schema), self._key(self._patterns))

    @property
    def title(self) -> str:
        """For people."""
        table = f"{self.schema}.{self.name}" if self.schema else self.name
        return f"{table} of {self.database.partition('://')[2]}"

    @property
    def _any(self) -> str:
        # no schema that a config may name has a dot
        return f"{len(self.schema)}."

    @property
    def _patterns(self) -> str:
        return f"{len(self.schema)}._"

    def _key(self, schema: str) -> Key:
        return self.database, schema, self.name


class Keys(NamedTuple):
    """The keys of all tables of a config."""

    leaves: frozenset[Key]
    finds: Mapping[Key, Used]


def used(config: Mapping[str, str]) -> list[Used]:
    """The tables that a config captures or fills; none of a class that the mesh does not know."""
    place, kind = place_of(config), config.get("connector.class")
    if place is None:
        return []
    host = f"{place.host.casefold()}:{place.port}"
    if kind == POSTGRES:
        database = f"postgresql://{host}/{config.get('database.dbname')}"
        # Debezium writes into the table of signals
        names = [*tables(config)[: MOST_LISTED + 1], config.get("signal.data.collection", "")]
        split = (one.partition(".") for one in names if one)
        return [Used(database, schema, name) for schema, _, name in split]
    url = JDBC.fullmatch(config.get("connection.url", ""))
    if kind != JDBC_SINK or url is None:
        return []
    found = [target for _, target in targets(config)[: MOST_LISTED + 1]]
    database = f"postgresql://{host}/{url['database']}"
    return [Used(database, schema, name, "_" in schema) for schema, name in found]


def keys_of(config: Mapping[str, str]) -> Keys:
    """What a config leaves in the index, and what must not stand there for another domain."""
    found = used(config)
    return Keys(
        frozenset(key for one in found for key in one.leaves),
        {key: one for one in found for key in one.finds},
    )


def taken(known: TableUse, config: Mapping[str, str], domain: str) -> list[tuple[Used, str]]:
    """The tables of a config that connectors of other domains use, each with one of those."""
    found = {
        table: min(others)
        for key, table in keys_of(config).finds.items()
        if (others := set(known.get(key, Map())) - {domain})
    }
    return sorted(found.items())


def with_table_use(before: "Image", after: "Image") -> "Image":
    """The image after a record, with the tables of the connectors that the record has changed."""
    if after.connectors is before.connectors:
        return after
    known = after.table_use
    for topic, name in after.touched:
        if topic == ConnectorRow.topic:
            known = _moved(known, before.connectors.get(name), after.connectors.get(name))
    return after if known is after.table_use else after._replace(table_use=known)


def _moved(known: TableUse, old: "Connector | None", new: "Connector | None") -> TableUse:
    was, now = _has(old), _has(new)
    if was == now:
        return known
    before, after = keys_of(was).leaves, keys_of(now).leaves
    found = new or old
    domain = found.domain if found is not None else ""
    for keys, step in ((before - after, -1), (after - before, 1)):
        for key in keys:
            count = known.get(key, Map()).get(domain, 0) + step
            known = with_entry(known, key, domain, count or None)
    return known


def _has(one: "Connector | None") -> Mapping[str, str]:
    """The config by which a connector uses tables; empty where it is gone."""
    return Map() if one is None or one.is_over else one.config
