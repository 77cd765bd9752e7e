"""The transforms and predicates that a connector may have: classes by name, each with its settings.

A class that is not here may run code, read files or call hosts out of its settings. Pure.
"""

from collections.abc import Iterator, Mapping

from projections.connectors.own_transforms import EVENT_ROUTER
from projections.connectors.routes import router_faults
from projections.connectors.values import (
    BOOLEAN,
    FIELD,
    FIELDS,
    OUTBOX_ROUTED,
    PATTERN,
    ROUTED,
    TEXT,
    Kind,
    items,
    listed,
    matching,
    one_of,
)

MOST_TRANSFORMS = 10
_OF_AVRO = matching(
    "_{1,3}", "one to three '_', and is '.' by default: names of fields in Avro have no '.' or '-'"
)
_NAME = matching(r"[A-Za-z][A-Za-z0-9_-]{0,49}", "letters, digits, '_' and '-'")
_KAFKA, _DEBEZIUM = "org.apache.kafka.connect.transforms", "io.debezium.transforms"
_FLATTEN, _TIMES = f"{_KAFKA}.Flatten", f"{_KAFKA}.TimestampConverter$"
_FIELD_OR_EMPTY = matching(r"[A-Za-z0-9_.]{0,200}[!?]?", "the name of a field")
_HEADERS = listed(matching(r"[A-Za-z_][A-Za-z0-9_.-]{0,199}", "the name of a header"))
_PLACED = listed(
    matching(
        r"[A-Za-z0-9_]{1,63}:(?:header|envelope|partition)(?::[A-Za-z0-9_]{1,63})?",
        "column:header:name or column:envelope:name",
    )
)
_ADDED = listed(matching(r"[A-Za-z0-9_.]{1,63}(?::[A-Za-z0-9_.]{1,63})?", "field or field:name"))
_PAIRS = listed(matching(r"[A-Za-z0-9_.]{1,63}:[A-Za-z0-9_.]{1,63}", "one:other"))
_TO_TEXT = listed(
    matching(r"[A-Za-z0-9_.]{1,63}:string", "field:string (a cast to a number cuts what it lacks)")
)
_POSITIONS: Mapping[str, Kind] = {
    **{f"{part}.field": _FIELD_OR_EMPTY for part in ("topic", "partition", "offset", "timestamp")},
    "static.field": _FIELD_OR_EMPTY,
    "static.value": TEXT,
    "replace.null.with.default": BOOLEAN,
}
_UNWRAP: Mapping[str, Kind] = {
    "drop.tombstones": BOOLEAN,
    "delete.handling.mode": one_of("drop", "rewrite", "none"),
    "delete.tombstone.handling.mode": one_of(
        "drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"
    ),
    "add.fields": _ADDED,
    "add.headers": _ADDED,
    "add.fields.prefix": matching(r"[A-Za-z0-9_]{0,30}", "letters, digits and '_'"),
    "add.headers.prefix": matching(r"[A-Za-z0-9_]{0,30}", "letters, digits and '_'"),
    "replace.null.with.default": BOOLEAN,
}
_OUTBOX: Mapping[str, Kind] = {
    **{
        f"table.field.event.{part}": FIELD
        for part in ("id", "key", "payload", "timestamp", "schema.version")
    },
    "table.fields.additional.placement": _PLACED,
    "table.fields.additional.error.on.empty": BOOLEAN,
    "table.expand.json.payload": BOOLEAN,
    "table.json.payload.null.behavior": one_of("ignore", "optional_bytes"),
    "table.op.invalid.behavior": one_of("warn", "error", "fatal"),
    "route.by.field": FIELD,
    "route.topic.regex": PATTERN,
    "route.topic.replacement": OUTBOX_ROUTED,
    "route.tombstone.on.empty.payload": BOOLEAN,
}
_OF_KEY_OR_VALUE: Mapping[str, Mapping[str, Kind]] = {
    "InsertField": _POSITIONS,
    "ReplaceField": {
        "include": FIELDS,
        "exclude": FIELDS,
        "renames": _PAIRS,
        "replace.null.with.default": BOOLEAN,
    },
    "MaskField": {
        "fields": FIELDS,
        "replacement": TEXT,
        "replace.null.with.default": BOOLEAN,
    },
    "Cast": {"spec": _TO_TEXT, "replace.null.with.default": BOOLEAN},
    "ExtractField": {"field": FIELD, "replace.null.with.default": BOOLEAN},
    "HoistField": {"field": FIELD},
    "Flatten": {"delimiter": matching(r"[._-]{1,3}", "'.', '_' or '-'")},
    "HeaderFrom": {
        "fields": FIELDS,
        "headers": _HEADERS,
        "operation": one_of("copy", "move"),
        "replace.null.with.default": BOOLEAN,
    },
    "TimestampConverter": {
        "field": FIELD,
        "target.type": one_of("string", "unix", "Date", "Time", "Timestamp"),
        "format": matching(r"[A-Za-z0-9 .:'/_-]{1,60}", "a format of Java's SimpleDateFormat"),
        "unix.precision": one_of("seconds", "milliseconds"),
        "replace.null.with.default": BOOLEAN,
    },
}
TRANSFORMS: Mapping[str, Mapping[str, Kind]] = {
    f"{_KAFKA}.RegexRouter": {"regex": PATTERN, "replacement": ROUTED},
    **{
        f"{_KAFKA}.{name}${side}": settings
        for name, settings in _OF_KEY_OR_VALUE.items()
        for side in ("Key", "Value")
    },
    f"{_KAFKA}.ValueToKey": {"fields": FIELDS, "replace.null.with.default": BOOLEAN},
    f"{_KAFKA}.InsertHeader": {
        "header": matching(r"[A-Za-z_][A-Za-z0-9_.-]{0,199}", "the name of a header"),
        "value.literal": TEXT,
    },
    f"{_KAFKA}.DropHeaders": {"headers": _HEADERS},
    f"{_KAFKA}.Filter": {},
    f"{_DEBEZIUM}.ExtractNewRecordState": _UNWRAP,
    EVENT_ROUTER: _OUTBOX,
}
"""Class -> setting -> kind of its value."""
PREDICATES: Mapping[str, Mapping[str, Kind]] = {
    f"{_KAFKA}.predicates.TopicNameMatches": {"pattern": PATTERN},
    f"{_KAFKA}.predicates.HasHeaderKey": {"name": _HEADERS},
    f"{_KAFKA}.predicates.RecordIsTombstone": {},
}
_KEEPING_KEYS = tuple(f"{_KAFKA}.{one}$Key" for one in ("Flatten", "HoistField", "InsertField"))
"""Transforms behind which records of two keys have two keys."""
_STEPS = {"transforms": TRANSFORMS, "predicates": PREDICATES}


def faults(config: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the transforms and predicates of a config, a sentence each."""
    for noun, known in _STEPS.items():
        names = items(config.get(noun, ""))
        if len(names) > MOST_TRANSFORMS or not all(map(_NAME.fits, names)):
            yield f"{noun}: give at most {MOST_TRANSFORMS} names, each of {_NAME.words}"
            continue
        yield from _of(config, noun, names, known)
    yield from router_faults(config)
    yield from _time_faults(config)
    for name in items(config.get("transforms", ""))[1:]:
        if config.get(f"transforms.{name}.type") == EVENT_ROUTER:
            yield (
                f"transforms: {name} has to be the first one: behind another, a record may be no "
                "change of a row any more, which an outbox's router passes on as it is"
            )


def delimiter_faults(config: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the names of fields that Flatten makes of a record's key or value.

    Without a converter they are names of Avro, and columns of the table that a sink writes.
    """
    for name in items(config.get("transforms", "")):
        kind, _, side = config.get(f"transforms.{name}.type", "").partition("$")
        setting = f"transforms.{name}.delimiter"
        is_avro = f"{side.lower()}.converter" not in config
        if kind == _FLATTEN and is_avro and not _OF_AVRO.fits(config.get(setting, ".")):
            yield f"{setting}: it must be {_OF_AVRO.words}"


def key_faults(config: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the transforms of a sink whose rows are found by their records' keys.

    Records of one key are in one partition, in their order. Those of a key that is made of
    something else are not, and an older one would be written over a newer one.
    """
    for name in items(config.get("transforms", "")):
        begin = f"transforms.{name}"
        kind = config.get(f"{begin}.type", "")
        renames = kind == f"{_KAFKA}.ReplaceField$Key" and not any(
            f"{begin}.{one}" in config for one in ("include", "exclude")
        )
        if kind in _KEEPING_KEYS or renames:
            continue
        if kind.endswith("$Key") or kind == f"{_KAFKA}.ValueToKey":
            yield (
                f"{begin}.type: with primary.key.mode=record_key the key stays what it is: records "
                "of one row would come in any order (allowed are Flatten$Key, HoistField$Key, "
                "InsertField$Key and the renames of ReplaceField$Key)"
            )


def _time_faults(config: Mapping[str, str]) -> Iterator[str]:
    """What TimestampConverter would make other times of.

    Java's SimpleDateFormat takes a microsecond for a millisecond, 31 February for 3 March, and
    leaves out what is behind; a time of Connect's own has milliseconds.
    """
    for name in items(config.get("transforms", "")):
        begin = f"transforms.{name}"
        if not config.get(f"{begin}.type", "").startswith(_TIMES):
            continue
        target = config.get(f"{begin}.target.type", "")
        if f"{begin}.format" in config and target != "string":
            yield (
                f"{begin}.format: it goes with target.type=string: of a text another time may be "
                "read than it says"
            )
        allowed = ("milliseconds", *(() if target == "unix" else ("seconds",)))
        if config.get(f"{begin}.unix.precision", "milliseconds") not in allowed:
            yield (
                f"{begin}.unix.precision: with target.type={target or 'unset'} it must be "
                f"{' or '.join(allowed)}: others cut what is finer"
            )


def _of(
    config: Mapping[str, str], noun: str, names: list[str], known: Mapping[str, Mapping[str, Kind]]
) -> Iterator[str]:
    allowed: dict[str, Kind] = {}
    for name in names:
        kind = config.get(f"{noun}.{name}.type", "")
        if kind not in known:
            yield f"{noun}.{name}.type: allowed are {', '.join(sorted(known))}"
            # its settings need not be told as well
            allowed |= dict.fromkeys(_below(config, f"{noun}.{name}."), TEXT)
            continue
        allowed |= {f"{noun}.{name}.{one}": value for one, value in known[kind].items()}
        allowed[f"{noun}.{name}.type"] = one_of(kind)
        if noun == "transforms":
            allowed[f"{noun}.{name}.predicate"] = _NAME
            allowed[f"{noun}.{name}.negate"] = BOOLEAN
    for setting in _below(config, f"{noun}."):
        if setting not in allowed:
            yield f"{setting}: no setting of the {noun} that the config names"
        elif not allowed[setting].fits(config[setting]):
            yield f"{setting}: it must be {allowed[setting].words}"


def _below(config: Mapping[str, str], prefix: str) -> list[str]:
    return sorted(one for one in config if one.startswith(prefix))
