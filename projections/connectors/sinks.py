"""What is wrong with a JDBC sink's config before any topic is looked at. Pure."""

import re
from collections.abc import Iterator, Mapping

from projections.connectors.own_transforms import EVENT_ROUTER
from projections.connectors.settings import OLD_ZONE, ZONE
from projections.connectors.tables import JDBC, named, targets
from projections.connectors.values import LONGEST_IDENTIFIER, items

Config = Mapping[str, str]
_DRIVER = frozenset({"sslmode", "ssl", "currentSchema"})
"""What an address of a database may say to its driver: nothing that loads a class or a file."""
_SCHEMA = re.compile(r"[A-Za-z0-9_]{1,63}")
_TABLE_FORM = re.compile(r"(?:[A-Za-z0-9_]+\.)?[A-Za-z0-9_]+")
_LISTS = ("field.include.list", "field.exclude.list")
_PARTS = ("partition", "offset")
_INSERTING = "InsertField$Value"


def faults(config: Config) -> Iterator[str]:
    """What is wrong, a sentence each; nothing of what follows a wrong address."""
    url = JDBC.fullmatch(config.get("connection.url", ""))
    if url is None:
        yield "connection.url: write jdbc:postgresql://host:port/database: sinks fill PostgreSQL"
        return
    yield from _of_address(url["more"] or "")
    yield from _of_rows(config)
    for setting in (ZONE, OLD_ZONE):
        if config.get(setting, "UTC") != "UTC":
            yield (
                f"{setting}: leave it out: it makes other times of those that the zone does not "
                "have, as when its clocks go forward"
            )
    yield from _of_tables(config)


def _of_address(more: str) -> Iterator[str]:
    said = [(name, value) for name, _, value in (one.partition("=") for one in more.split("&"))]
    if wrong := [name for name, _ in said if name and name not in _DRIVER]:
        known = ", ".join(sorted(_DRIVER))
        yield f"connection.url: leave out {', '.join(wrong)}: allowed are {known}"
    # with a dot it would be another schema to Debezium than to the rules of whose a table is
    if not all(_SCHEMA.fullmatch(value) for name, value in said if name == "currentSchema"):
        yield "connection.url: currentSchema: write one schema, of letters, digits and '_'"


def _of_rows(config: Config) -> Iterator[str]:
    """Rows are found by the record's key or by its position: others come in any order."""
    for setting, values in (
        ("primary.key.mode", "record_key or record_value"),
        ("insert.mode", "upsert"),
    ):
        if setting not in config:
            yield (
                f"{setting}: it is missing, and a record that comes again would be a second row: "
                f"write {values}"
            )
    fields = items(config.get("primary.key.fields", ""))
    by_key = config.get("primary.key.mode") == "record_key"
    for setting in ("primary.key.fields", *_LISTS):
        if by_key and config.get(setting):
            yield (
                f"{setting}: leave it out with primary.key.mode=record_key: without a field of its "
                "key a record would find the rows of others (ReplaceField$Value leaves fields of "
                "values out)"
            )
    by_value = config.get("primary.key.mode") == "record_value"
    if by_value and not all(_field(config, part) in fields for part in _PARTS):
        yield (
            "primary.key.fields: with primary.key.mode=record_value name the record's position, "
            f"the partition.field and offset.field of an {_INSERTING}; else write record_key: "
            "records of one row that stand in several partitions come in any order"
        )


def _field(config: Config, part: str) -> str | None:
    """The field of the value in which a transform puts a part of the record's position."""
    end = f".{part}.field"
    for name in items(config.get("transforms", "")):
        begin = f"transforms.{name}"
        if config.get(f"{begin}.type", "").endswith(_INSERTING) and f"{begin}{end}" in config:
            return config[f"{begin}{end}"].rstrip("!?")
    return None


def _of_tables(config: Config) -> Iterator[str]:
    form = config.get("collection.name.format", "x").replace("${topic}", "x")
    if not _TABLE_FORM.fullmatch(form):
        yield (
            "collection.name.format: write a table's name, or schema.table, of letters, digits, "
            "'_' and ${topic}: a table that follows from the records could be anybody's"
        )
        return
    if EVENT_ROUTER in (value for name, value in config.items() if name.startswith("transforms.")):
        yield (
            f"transforms: leave out {EVENT_ROUTER}: the table would follow from the records, and "
            "could be anybody's"
        )
        return
    # Debezium makes such a table, and finds none of its whole name
    for topic, names in named(config):
        if max(map(len, names)) > LONGEST_IDENTIFIER:
            yield (
                f"collection.name.format: write a name of at most {LONGEST_IDENTIFIER} letters for "
                f"{topic}: PostgreSQL cuts longer ones"
            )
    if config.get("quote.identifiers") == "true":
        return
    # some names are quoted all the same, and have the letters of the config
    for _, (_, table) in targets({**config, "quote.identifiers": "true"}):
        if table != table.lower() and ("-" in table or table[:1].isdigit()):
            yield f"quote.identifiers: write true: {table} keeps its capitals without it as well"
