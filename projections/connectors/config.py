"""What a connector's config says by itself: topics, tables, secrets, logins. Pure.

A config is setting -> value, as Kafka Connect takes it. Connect resolves a reference in any
setting, and what it resolved can leave it again: a transform writes it into a record, a driver
sends it to another host. So a reference is compared as a whole with the few that are allowed.
"""

import re
from collections.abc import Iterable, Mapping

from mesh_events.connectors import is_reference
from projections.connectors import settings, sinks, system_tables
from projections.connectors.settings import (
    JDBC_SINK,
    MOST_TASKS,
    POSTGRES,
    READ_ANEW,
    READERS,
    SNAPSHOT,
)
from projections.connectors.tables import TABLES, Table, beside, captured, filled, tables
from projections.connectors.values import items

__all__ = ["JDBC_SINK", "MOST_TASKS", "POSTGRES", "Table", "captured", "filled"]
Config = Mapping[str, str]
SECRET_SETTINGS: Mapping[str, str] = {
    POSTGRES: "database.password",
    JDBC_SINK: "connection.password",
}
"""Connector class -> the setting in which it takes a secret."""
DEAD_LETTERS = "errors.deadletterqueue.topic.name"
MOST_TOPICS = 200
MOST_SETTINGS, LONGEST_NAME, LONGEST_VALUE = 200, 200, 4000
LONGEST_CONFIG = 65_536
"""Characters of all names and values of a config together."""
_TOPIC_SETTINGS = ("topic", "kafka.topic", DEAD_LETTERS)
_FAULTS_TOLD = 5
_PREFIX_SETTINGS = ("topic.prefix", "topic.heartbeat.prefix")
_LOGIN = re.compile(
    r"(producer|consumer|admin)\.override\.(bootstrap\.|security\.|sasl\.|ssl\.).*"
    r"|offsets\.storage\.topic",
    re.DOTALL,
)
_SECRET_WORDS = (
    *("password", "passwd", "passphrase", "secret", "token", "jaas", "credential", "userinfo"),
    *("apikey", "accesskey", "privatekey", "keystorekey"),
)
_SECRET_TEXT = re.compile(r"://[^/@\s:]*+:[^/@\s]*+@|-----BEGIN ")
"""A user and password in an address, a key. No part gives back what it took, so that the time is
linear in the length of the value."""
_PLACEHOLDER = re.compile(r"\$\{(?:topic|routedByValue|source\.(?:db|schema|table))\}")
"""What names of tables and topics are made of; to Connect it is no reference, having no colon."""
_CLASS = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+")


def size(config: Config) -> int:
    """Characters of all names and values together."""
    return sum(len(name) + len(value) for name, value in config.items())


def is_sink(config: Config) -> bool:
    """Whether it reads topics."""
    return "topics" in config or "topics.regex" in config


def reads(config: Config) -> tuple[str, ...]:
    """Topics that a sink reads."""
    return tuple(dict.fromkeys(items(config.get("topics", ""))))


def writes(config: Config) -> tuple[str, ...]:
    """Topics that are named as such, those that tables are captured into, and Debezium's own."""
    named = [config[one] for one in _TOPIC_SETTINGS if config.get(one)]
    captures = [one.topic for one in captured(config)]
    return tuple(dict.fromkeys([*named, *captures, *(topic for _, topic in beside(config))]))


def is_by_record_key(config: Config) -> bool:
    """Whether each row of a sink is found again by the key of its record alone.

    So a record that is read once more, at whatever offset, is the row that it was.
    """
    return (
        config.get("connector.class") == JDBC_SINK
        and config.get("insert.mode") == "upsert"
        and config.get("primary.key.mode") == "record_key"
        and not any(
            name.startswith("transforms.") and value.endswith("InsertField$Key")
            for name, value in config.items()
        )
    )


def replaces_rows(config: Config) -> bool:
    """Whether a record of a sink may change or delete the row of an earlier record.

    It may not where the offset of each record is a part of the row's primary key.
    """
    if config.get("connector.class") != JDBC_SINK:
        return False
    changes = config.get("insert.mode") in ("upsert", "update")
    if not changes and config.get("delete.enabled") != "true":
        return False
    mode = config.get("primary.key.mode")
    if mode not in ("record_key", "record_value"):
        return False
    part = "$Key" if mode == "record_key" else "$Value"
    offsets = {
        value.rstrip("!?")
        for name, value in config.items()
        if name.endswith(".offset.field")
        and config.get(f"{name.removesuffix('.offset.field')}.type", "").endswith(part)
    }
    fields = items(config.get("primary.key.fields", ""))
    # without fields all those of the key are the primary key
    named = offsets.intersection(fields) if fields or mode == "record_value" else offsets
    return not named


def foreign_topics(config: Config, domain: str) -> list[str]:
    """Settings that name topics outside of the domain's prefix, and what is routed there.

    What a config does not name, such as the topics of an outbox, Kafka refuses later.
    """
    own = f"{domain}."
    names = [one for one in _TOPIC_SETTINGS if config.get(one) and not config[one].startswith(own)]
    names += [
        one for one in _PREFIX_SETTINGS if one in config and not f"{config[one]}.".startswith(own)
    ]
    filling = [(f"the table {one.name}", one.topic) for one in captured(config)]
    routed = [one for one in (*filling, *beside(config)) if not one[1].startswith(own)]
    return [
        *(f"{one}={config[one]}" for one in names),
        *(f"the topic {topic} of {source}" for source, topic in routed[:_FAULTS_TOLD]),
    ]


def own_logins(config: Config) -> list[str]:
    """Settings of a login or a place that the mesh itself puts in."""
    return [name for name in sorted(config) if _LOGIN.fullmatch(name)]


def unfit(config: Config) -> str | None:
    """What is wrong with a config before any topic or secret is looked at, None if nothing.

    A class is named in full: by its short name it would be somebody else to every rule here.
    """
    kind = config.get("connector.class", "")
    if not kind:
        return "connector.class: it is missing: see `sdm connect plugins`"
    if not _CLASS.fullmatch(kind):
        return (
            f"connector.class: {kind[:200]!r}: write the class in full: see `sdm connect plugins`"
        )
    if "name" in config:
        return "name: leave it out: a connector is called by its id"
    if kind == POSTGRES:
        found = _unfit_capture(config)
    else:
        found = next(sinks.faults(config), None) if kind == JDBC_SINK else None
    return found or system_tables.fault(config)


def not_allowed(config: Config, *, shared: bool = False) -> str | None:
    """The settings that a connector of this class may not have, None if there is none.

    Args:
        config: as the log has it.
        shared: whether its login is one that several domains have.
    """
    found = list(settings.faults(config, shared=shared))
    more = f"; and {len(found) - _FAULTS_TOLD} more" if len(found) > _FAULTS_TOLD else ""
    return "; ".join(found[:_FAULTS_TOLD]) + more if found else None


def read_anew(before: Config, after: Config) -> str:
    """What an updated capture would have to read anew, and would not; "" for nothing.

    It reads tables before it has any position, which it keeps under its prefix.
    """
    if not before.get("connector.class") == after.get("connector.class") == POSTGRES:
        return ""
    for setting in ("topic.prefix", "database.dbname"):
        if before.get(setting) != after.get(setting):
            return f"{setting}={after.get(setting, '')}"
    more = set(items(after.get(TABLES, ""))) - set(items(before.get(TABLES, "")))
    if more and after.get(SNAPSHOT) != "no_data":
        return f"{', '.join(sorted(more)[:_FAULTS_TOLD])} (or give snapshot.mode=no_data)"
    return ""


def _unfit_capture(config: Config) -> str | None:
    if not tables(config):
        return f"{TABLES}: name each table, schema.table"
    if config.get(SNAPSHOT) in READ_ANEW:
        return (
            f"{SNAPSHOT}: {config[SNAPSHOT]} reads the tables anew and passes by the changes "
            "before, so that rows which were deleted meanwhile stay in the topics: leave it out"
        )
    if config.get(READERS, "1") != "1":
        return (
            f"{READERS}: several of them pass rows by in tables whose keys are times: leave it out"
        )
    return None


def clash(ours: Iterable[str], theirs: Iterable[str]) -> set[str]:
    """Topics of `ours` that cannot be beside `theirs`: Kafka takes . and _ for the same."""
    others = {one.replace(".", "_") for one in theirs}
    return {one for one in ours if one.replace(".", "_") in others}


def foreign_references(config: Config) -> list[str]:
    """Settings that refer to a secret which is not the connector's, or not in its place."""
    place = SECRET_SETTINGS.get(config.get("connector.class", ""))
    return [
        name
        for name, value in sorted(config.items())
        if "${" in name
        or ("${" in _PLACEHOLDER.sub("", value) and not (name == place and is_reference(value)))
    ]


def plain_secrets(config: Config) -> list[str]:
    """Settings that hold a secret itself instead of a reference."""
    return [name for name, value in sorted(config.items()) if _is_plain(name, value)]


def redacted(config: Config) -> dict[str, str]:
    """A config for people: what may be a secret is shown only where it is a reference."""
    return {
        name: "(hidden)" if _is_plain(name, value) else value
        for name, value in sorted(config.items())
    }


def tasks(config: Config) -> int | None:
    """How many tasks there may be; None if that is no number from 1 to `MOST_TASKS`."""
    text = config.get("tasks.max", "1")
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else 0
    return number if 1 <= number <= MOST_TASKS else None


def _is_plain(name: str, value: str) -> bool:
    plain = re.sub("[._-]", "", name.casefold())
    secret = any(word in plain for word in _SECRET_WORDS) and not is_reference(value)
    return secret or _SECRET_TEXT.search(value) is not None
