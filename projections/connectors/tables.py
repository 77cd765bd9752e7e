"""Tables that a connector's config names: what captures and fills them, and where. Pure."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from immutables import Map

from projections.connectors import routes
from projections.connectors.own_transforms import (
    NEED_FIELDS,
    with_exact_values,
    with_headers_as_they_are,
    with_plain_names,
    with_sound_changes,
    with_whole_rows,
)
from projections.connectors.settings import (
    JDBC_SINK,
    KEYLESS,
    OLD_ZONE,
    POSTGRES,
    READ_ANEW,
    READERS,
    SNAPSHOT,
    UNNEST,
    ZONE,
)
from projections.connectors.values import LONGEST_IDENTIFIER, MOST_LISTED, is_host, items

Config = Mapping[str, str]
TABLES = "table.include.list"
JDBC = re.compile(
    r"jdbc:postgresql://(?P<host>[A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"/(?P<database>[A-Za-z0-9_-]+)"
    r"(?:[?](?P<more>[A-Za-z]+=[A-Za-z0-9_.-]*(?:&[A-Za-z]+=[A-Za-z0-9_.-]*)*))?"
)
"""An address of a database that a sink may fill."""
HEARTBEATS, TRANSACTIONS = "Debezium's heartbeats", "Debezium's transactions"
"""What Debezium may write beside the rows of tables."""
HEARTBEAT_PREFIX = "topic.heartbeat.prefix"
_CREATION = "topic.creation"
_OF_TOPICS = [f"{_CREATION}.default.{one}" for one in ("partitions", "replication.factor")]
"""Settings without which a config may not say how topics are created."""
_HOUR_MS = "3600000"
_QUEUE_BYTES = 8 << 20
"""What a capture keeps of rows that Kafka has not taken."""
_FETCH_ROWS = "500"
"""Rows that a snapshot asks for at once; Debezium's own are 10 240. The driver ends a connection
whose database sends more than 16 MiB at once."""
_OF_VALUES = {
    "bytea_output": "hex",
    "IntervalStyle": "postgres",
    # each digit of floating point
    "extra_float_digits": "3",
    # rows that a policy hides from the login fail the snapshot
    "row_security": "off",
    # names in defaults and types
    "quote_all_identifiers": "off",
    # that a publication is gone is a warning alone
    "client_min_messages": "warning",
}
"""Of a capture's sessions, whatever the server, the database and the role have: PostgreSQL writes
values of its log as texts by them, and Debezium reads those of its defaults."""
_SOURCE_SILENCE_S, _SINK_SILENCE_S = 3660, 600
"""For how long a database may leave a statement without an answer: longer than any
`database.query.timeout.ms` of a capture; a sink's take seconds, but for a lock."""
_OF_SINKS = f"socketTimeout={_SINK_SILENCE_S}"
"""What a sink's driver is told."""
_SIGNALS = ("signal.", "incremental.")
"""Settings of snapshots by signals, which pass by what they fail to read, and tell nobody."""
_FORM = "collection.name.format"
_POOL = {"connection.pool.min_size": "1", "connection.pool.max_size": "2"}
"""Of a sink's task, which uses one at a time; Debezium's own are 5 and 32."""
_PORT = "5432"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a database, named as OpenLineage does, and the topic that it is bound to."""

    namespace: str
    name: str
    topic: str


def captured(config: Config) -> list[Table]:
    """Tables that Debezium captures and the topics that its transforms make of them."""
    place = f"{config.get('database.hostname')}:{config.get('database.port', _PORT)}"
    database = config.get("database.dbname")
    known = set(tables(config))
    return [
        Table(f"postgres://{place}", f"{database}.{table}", topic)
        for table, topic in _topics(config)
        if table in known
    ]


def beside(config: Config) -> list[tuple[str, str]]:
    """(source, topic) of what Debezium writes beside the rows of tables."""
    return [one for one in _topics(config) if one[0] in (HEARTBEATS, TRANSACTIONS)]


def tables(config: Config) -> list[str]:
    """Tables that Debezium is to capture, each as schema.table, as the database spells them."""
    return items(config.get(TABLES, ""))


def route(prefix: str) -> str:
    """The pattern that finds a table's own name in the topics of a prefix."""
    return rf"{re.escape(prefix)}\.[^.]+\.(.+)"


def route_with_schema(prefix: str) -> str:
    """The pattern that finds schema.table in the topics of a prefix."""
    return rf"{re.escape(prefix)}\.(.+)"


def merged(config: Config) -> list[tuple[str, list[str]]]:
    """Topics that more than one source would fill, with the tables and Debezium's own sources."""
    found: dict[str, list[tuple[str, str]]] = {}
    for table, topic in _topics(config):
        # Kafka takes . and _ for the same
        found.setdefault(topic.replace(".", "_"), []).append((topic, table))
    return [
        (sources[0][0], sorted(table for _, table in sources))
        for sources in found.values()
        if len(sources) > 1
    ]


def slot_of(connector: str) -> str:
    """The replication slot of a connector, and its publication: its own for each, at most 63 bytes.

    What the database would take for the same, as `a-b.c` and `a.b-c`, is told apart by a digest.
    """
    plain = re.sub(r"[^a-z0-9_]", "_", connector)
    if plain == connector.replace(".", "_") and len(plain) + 4 <= LONGEST_IDENTIFIER:
        return f"sdm_{plain}"
    digest = hashlib.sha256(connector.encode()).hexdigest()[:16]
    return f"sdm_{digest}_{plain[-(LONGEST_IDENTIFIER - 21) :]}"


def filled(config: Config) -> list[Table]:
    """Tables that a JDBC sink fills, where their name follows from the topic's.

    A user and a password in the database's address are left out of the name.
    """
    url = JDBC.fullmatch(config.get("connection.url", ""))
    if config.get("connector.class") != JDBC_SINK or url is None:
        return []
    place = f"postgres://{url['host']}:{url['port'] or _PORT}"
    return [
        Table(place, ".".join((url["database"], *target)), topic)
        for topic, target in targets(config)
    ]


def targets(config: Config) -> list[tuple[str, tuple[str, str]]]:
    """(topic, (schema, table)) of what a JDBC sink fills, as the database spells them."""
    return [
        (topic, (schema[:LONGEST_IDENTIFIER], table[:LONGEST_IDENTIFIER]))
        for topic, (schema, table) in named(config)
    ]


def named(config: Config) -> list[tuple[str, tuple[str, str]]]:
    """The same by their whole names, of which PostgreSQL takes the first letters."""
    url = JDBC.fullmatch(config.get("connection.url", ""))
    form = _form(config)
    if config.get("connector.class") != JDBC_SINK or url is None or "${source." in form:
        return []

    def target(topic: str) -> tuple[str, str]:
        schema, _, table = form.replace("${topic}", topic.replace(".", "_")).rpartition(".")
        if config.get("quote.identifiers") != "true":
            schema, table = schema.lower(), table.lower()
        return schema, table

    topics = items(config.get("topics", ""))
    routed = routes.topics(config, [(topic, topic) for topic in topics])
    return [(topic, target(after)) for topic, after in routed]


def foreign_names(config: Config, connector: str, before: Config) -> list[str]:
    """Settings that name a slot or a publication which is not the connector's own.

    Who reads another connector's slot takes its changes away. A publication that somebody else
    keeps may be shared, and is not changed by the connector; what `before` has as its own is kept.
    """
    own, had = slot_of(connector), {one: before.get(one) for one in _own_names(before)}
    return [one for one in _own_names(config) if config.get(one, own) not in (own, had.get(one))]


def _own_names(config: Config) -> tuple[str, ...]:
    """Settings that name what the connector makes and changes in its database."""
    is_kept = config.get("publication.autocreate.mode") == "disabled"
    return ("slot.name",) if is_kept else ("slot.name", "publication.name")


def pinned(connector: str, config: Config) -> dict[str, str]:
    """A config as Debezium is to have it: it captures the tables that are named and no other.

    To Debezium a name is a pattern without regard to case, so each is written as one that matches
    itself alone. Its own slot is put in where the config names none, and heartbeats go to a topic
    of its domain, past transforms that fail without a row's fields. It fails at a change that does
    not hold the whole row, and at an error of the database that it would retry for ever and tell
    nobody. What it has read and Kafka has not takes a bounded part of Connect's memory.

    A JDBC sink is given the schema of its tables. Without one it fills the first table of that name
    in any schema. It escapes no names, so it gets records with plain ones alone, and with values
    that its tables can have. It is given no headers. A task keeps as many connections to the
    database as it uses, unless the config says otherwise.
    """
    if config.get("connector.class") == JDBC_SINK:
        found = {**_POOL, **config, **_pinned_sink(config), **_with_json(config)}
        found = with_plain_names(with_headers_as_they_are(with_sound_changes(found)))
        return with_exact_values(found)
    if config.get("connector.class") != POSTGRES:
        return {**config, **_with_json(config)}
    own = slot_of(connector)
    found = {
        "plugin.name": "pgoutput",
        "slot.name": own,
        "publication.name": own,
        "publication.autocreate.mode": "filtered",
        "max.queue.size.in.bytes": str(_QUEUE_BYTES),
        "snapshot.fetch.size": _FETCH_ROWS,
        # Debezium's default counts a month as 30.4375 days
        "interval.handling.mode": "string",
        # the controller starts it again, and tells it
        "errors.max.retries": "0",
        **(_heartbeats(config) if _has_heartbeats(config) else {}),
        **config,
        # changes come under the names of tables that are captured, not of their partitions
        "publish.via.partition.root": "true",
        # what is written while it stands still, or has not come to a standby, would be lost
        "slot.drop.on.stop": "false",
        "slot.failover": "false",
        # several leave out rows of tables whose keys are times
        READERS: "1",
        # no setting of the driver is a domain's
        "driver.socketTimeout": str(_SOURCE_SILENCE_S),
        "driver.options": " ".join(f"-c {name}={value}" for name, value in _OF_VALUES.items()),
        **_with_json(config),
        **_with_rows_alone(config),
    }
    if found.get(SNAPSHOT) in READ_ANEW:
        found[SNAPSHOT] = "initial"
    found = {name: value for name, value in found.items() if not name.startswith(_SIGNALS)}
    for name in (TABLES, "column.include.list", "column.exclude.list"):
        if name in found:
            found[name] = ",".join(map(_exactly, items(found[name])))
    autoset = "replica.identity.autoset.values"
    if autoset in found:
        tables_of = [one.removesuffix(":FULL") for one in items(found[autoset])]
        found[autoset] = ",".join(f"{_exactly(one)}:FULL" for one in tables_of)
    keyless = found.pop(KEYLESS, None)
    return with_whole_rows(connector, found, keyless)


class Place(NamedTuple):
    """A database: the server's address, and the name that it has there."""

    host: str
    port: int
    database: str


def place_of(config: Config) -> Place | None:
    """The database that a config leads to, None where that is not known."""
    if config.get("connector.class") == POSTGRES:
        host, port = config.get("database.hostname", ""), config.get("database.port", _PORT)
        database = config.get("database.dbname", "")
    elif (url := JDBC.fullmatch(config.get("connection.url", ""))) is not None:
        host, port = url["host"], url["port"] or _PORT
        database = url["database"]
    else:
        return None
    return Place(host, int(port), database) if is_host(host) and port.isdecimal() else None


def sslmode_of(config: Config) -> str | None:
    """How a config wants TLS with its database, in libpq's words; None where it does not say it."""
    if config.get("connector.class") == POSTGRES:
        return config.get("database.sslmode")
    url = JDBC.fullmatch(config.get("connection.url", ""))
    if url is None or not url["more"]:
        return None
    # of a setting that stands twice the driver takes the last
    said = dict(one.split("=", 1) for one in url["more"].split("&"))
    if "sslmode" in said:
        return said["sslmode"].lower()
    return "verify-full" if said.get("ssl", "no").lower() in ("", "true") else None


def _topics(config: Config) -> tuple[tuple[str, str], ...]:
    """(table, topic) of what a capturing connector fills, as far as its config has it."""
    if config.get("connector.class") != POSTGRES or not config.get("topic.prefix"):
        return ()
    return _routed(config if isinstance(config, Map) else Map(config))


@lru_cache(maxsize=1024)
def _routed(config: Map[str, str]) -> tuple[tuple[str, str], ...]:
    prefix = config["topic.prefix"]
    names = list(dict.fromkeys(tables(config)))[: MOST_LISTED + 1]
    sources = [(table, f"{prefix}.{table}") for table in names]
    others = []
    if _has_heartbeats(config):
        others.append((HEARTBEATS, f"{_heartbeat_prefix(config)}.{prefix}"))
    if config.get("provide.transaction.metadata") == "true":
        others.append((TRANSACTIONS, f"{prefix}.transaction"))
    of_tables = routes.topics(config, sources)
    return (*of_tables, *routes.topics(config, others, of_rows=False))


def _has_heartbeats(config: Config) -> bool:
    prefixed = bool(config.get("topic.prefix"))
    return prefixed and config.get("heartbeat.interval.ms", "").strip("-0") != ""


def _heartbeats(config: Config) -> dict[str, str]:
    """They go to a topic of the domain, and confirm what came while nothing was captured.

    Connect creates their topic with a short retention: nobody needs an old one.
    """
    prefix = _heartbeat_prefix(config)
    found = {HEARTBEAT_PREFIX: prefix}
    if not all(one in config for one in _OF_TOPICS):
        return found
    group = f"{_CREATION}.heartbeats"
    return found | {
        f"{_CREATION}.groups": "heartbeats",
        f"{group}.include": f"{prefix}.{config['topic.prefix']}".replace(".", "[.]"),
        f"{group}.retention.ms": _HOUR_MS,
        f"{group}.segment.ms": _HOUR_MS,
    }


def _with_rows_alone(config: Config) -> dict[str, str]:
    """Keep what Debezium writes beside rows from transforms that would fail without their fields.

    One that has a predicate already is for the records that this one names.
    """
    steps = items(config.get("transforms", ""))
    found: dict[str, str] = {}
    own = []
    for at, name in enumerate(steps):
        of, predicate = f"transforms.{name}", f"_rows_{name}"
        if config.get(f"{of}.type") not in NEED_FIELDS or f"{of}.predicate" in config:
            continue
        # routers before it may have given them other topics
        topics = [topic for _, topic in beside({**config, "transforms": ",".join(steps[:at])})]
        if not topics:
            continue
        own.append(predicate)
        found |= {
            f"{of}.predicate": predicate,
            f"{of}.negate": "true",
            f"predicates.{predicate}.type": routes.TOPIC_MATCHES,
            f"predicates.{predicate}.pattern": "|".join(topics).replace(".", "[.]"),
        }
    if own:
        found["predicates"] = ",".join((*items(config.get("predicates", "")), *own))
    return found


def _heartbeat_prefix(config: Config) -> str:
    """What stands before the topic's prefix in the name of the heartbeats' topic.

    Debezium's own would lie outside of the domain's names.
    """
    domain = config["topic.prefix"].partition(".")[0]
    return config.get(HEARTBEAT_PREFIX, f"{domain}.__heartbeat")


def _exactly(name: str) -> str:
    """A pattern of Java's that matches one name alone, whatever stands in it."""
    plain = (
        one if one.isascii() and (one.isalnum() or one == "_") else f"\\x{{{ord(one):x}}}"
        for one in name
    )
    return "(?-i)" + "".join(plain)


def _form(config: Config) -> str:
    """What a JDBC sink calls its tables, with their schema."""
    form = config.get(_FORM, "${topic}")
    url = JDBC.fullmatch(config.get("connection.url", ""))
    if url is None or "." in form.replace("${source.", ""):
        return form
    # of a setting that stands twice the driver takes the last
    found = re.findall(r"(?:^|&)currentSchema=([^&]*)", url["more"] or "")
    return f"{(found and found[-1]) or 'public'}.{form}"


def _pinned_sink(config: Config) -> dict[str, str]:
    """What a JDBC sink has in any case.

    Times are written in UTC: a zone whose clocks go forward lacks an hour.
    """
    zones = dict.fromkeys((one for one in (ZONE, OLD_ZONE) if one == ZONE or one in config), "UTC")
    return {
        _FORM: _form(config),
        UNNEST: "false",
        # it empties the table of all topics that fill it
        "truncate.enabled": "false",
        **zones,
        **_with_bounds(config),
    }


def _with_json(config: Config) -> dict[str, str]:
    """Have converters of JSON leave null what is null; they give the default of its field.

    Of the schemas of a table that changes they keep the latest: a thousand fill Connect's heap.
    """
    settings = {"replace.null.with.default": "false", "schemas.cache.size": "10"}
    return {
        f"{side}.{name}": value
        for side in ("key.converter", "value.converter")
        if config.get(side, "").endswith(".JsonConverter")
        for name, value in settings.items()
    }


def _with_bounds(config: Config) -> dict[str, str]:
    """The address of a sink's database, with what its driver may do for a server."""
    address = config.get("connection.url", "")
    url = JDBC.fullmatch(address)
    if url is None:
        return {}
    return {"connection.url": f"{address}{'&' if url['more'] else '?'}{_OF_SINKS}"}
