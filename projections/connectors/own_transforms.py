"""The mesh's own transformations of connectors: domains can neither name them nor leave them out.

What makes a capturing connector stop at a change that does not have the whole row, a source at a
record for a topic that is not its domain's, and a JDBC sink at a record out of whose schema it
would make a statement, or of whose values it would write others. Pure.
"""

import hashlib
from collections.abc import Mapping

from projections.connectors.fields import blind
from projections.connectors.values import items

EVENT_ROUTER = "io.debezium.transforms.outbox.EventRouter"
WHOLE_ROWS = "mesh.WholeRows"
"""The transformation's class."""
PLAIN_NAMES = "mesh.PlainNames"
"""The transformation's class."""
EXACT_VALUES = "mesh.ExactValues"
"""The transformation's class."""
OWN_TOPICS = "mesh.OwnTopics"
"""The transformation's class."""
SOUND_CHANGES = "mesh.SoundChanges"
"""The transformation's class."""
NAME, SOUND, PLAIN, EXACT, OWN = "_whole", "_sound", "_plain", "_exact", "_own"
"""No transform of a domain may begin with _."""
PLACEHOLDER = "unavailable.value.placeholder"
_HEADERS = "header.converter"
_CUTS = ("field.include.list", "field.exclude.list")
HEADERS_AS_THEY_ARE = (
    "org.apache.kafka.connect.converters.ByteArrayConverter",
    "org.apache.kafka.connect.storage.StringConverter",
)
"""Converters of headers that take any bytes, the default first. Connect's own guesses types, and
fails at `{"id":1,"k":"1"}`, before there could be a dead letter of it."""


_KAFKA = "org.apache.kafka.connect.transforms"
NEED_FIELDS = frozenset(
    (
        f"{_KAFKA}.ValueToKey",
        f"{_KAFKA}.ExtractField$Key",
        f"{_KAFKA}.ExtractField$Value",
        f"{_KAFKA}.HeaderFrom$Key",
        f"{_KAFKA}.HeaderFrom$Value",
    )
)
"""Transforms that fail at a record which lacks a field that they name; others pass it on."""


_EXTRACTING = {
    "key.converter": f"{_KAFKA}.ExtractField$Key",
    "value.converter": f"{_KAFKA}.ExtractField$Value",
}


def routes_outbox(config: Mapping[str, str]) -> bool:
    """Whether every record passes an outbox's router, which reads inserted rows and nothing else.

    With a predicate it need not be every one; behind another transform it need not be a row.
    """
    first = f"transforms.{config.get('transforms', '').split(',')[0].strip()}"
    return config.get(f"{first}.type") == EVENT_ROUTER and f"{first}.predicate" not in config


def written_as_structs(config: Mapping[str, str]) -> list[str]:
    """Converters of a capture by which a record would be `Struct{id=1}`, a text nobody can read.

    What a router of an outbox or ExtractField leaves of it may be a text.
    """
    steps = (one.strip() for one in config.get("transforms", "").split(","))
    kinds = {config.get(f"transforms.{one}.type") for one in steps}
    if EVENT_ROUTER in kinds:
        return []
    return [
        converter
        for converter, extracting in _EXTRACTING.items()
        if config.get(converter) == HEADERS_AS_THEY_ARE[1] and extracting not in kinds
    ]


def with_whole_rows(
    connector: str, config: Mapping[str, str], keyless: str | None = None
) -> dict[str, str]:
    """The config of a capturing connector that fails at incomplete rows and at TRUNCATE.

    So it does at a record without a key of a table that had one. That of an outbox, of which
    inserts alone are read, fails at values that cannot be converted.

    Args:
        connector: its id.
        config: as Debezium is to have it; one that names `skipped.operations` keeps it.
        keyless: tables that have no primary key, `schema.table` with commas; None: not known.
    """
    # a value that Debezium cannot convert would be null
    found = {**config, "event.converting.failure.handling.mode": "fail"}
    if routes_outbox(config):
        return found
    placeholder = config.get(PLACEHOLDER, _placeholder(connector))
    others = config.get("transforms", "")
    return {
        # TRUNCATE arrives, so that the task can fail
        "skipped.operations": "none",
        **found,
        PLACEHOLDER: placeholder,
        "transforms": f"{NAME},{others}" if others else NAME,
        f"transforms.{NAME}.type": WHOLE_ROWS,
        f"transforms.{NAME}.placeholder": placeholder,
        **({} if keyless is None else {f"transforms.{NAME}.keyless": keyless}),
    }


def with_plain_names(config: Mapping[str, str]) -> dict[str, str]:
    """The config of a JDBC sink that refuses records whose names are not plain.

    It looks at what the other transforms have made of a record, so it runs behind them.
    """
    return {**_with_last(config, PLAIN), f"transforms.{PLAIN}.type": PLAIN_NAMES}


def with_sound_changes(config: Mapping[str, str]) -> dict[str, str]:
    """The config of a JDBC sink that refuses changes which contradict themselves, before all else.

    It takes no change at all where a transform names fields of rows, in which it would find none.
    """
    others = config.get("transforms", "")
    return {
        **config,
        "transforms": f"{SOUND},{others}" if others else SOUND,
        f"transforms.{SOUND}.type": SOUND_CHANGES,
        f"transforms.{SOUND}.rows": str(bool(blind(config))).lower(),
    }


def with_exact_values(config: Mapping[str, str]) -> dict[str, str]:
    """The config of a JDBC sink that writes values as they are; schemas are looked at before.

    Of a sink that leaves fields out it does not look whether each could be a column.
    """
    return {
        **_with_last(config, EXACT),
        **({f"transforms.{EXACT}.cut": "true"} if any(config.get(one) for one in _CUTS) else {}),
        f"transforms.{EXACT}.type": EXACT_VALUES,
        f"transforms.{EXACT}.keys": str(config.get("primary.key.mode") == "record_key").lower(),
    }


def with_headers_as_they_are(config: Mapping[str, str]) -> dict[str, str]:
    """The config of a JDBC sink that stops at no header: it uses none, and anybody may write one.

    Debezium itself writes the old and the new key of a row as JSON.
    """
    own = config.get(_HEADERS)
    return {**config, _HEADERS: own if own in HEADERS_AS_THEY_ARE else HEADERS_AS_THEY_ARE[0]}


def with_own_topics(domain: str, config: Mapping[str, str]) -> dict[str, str]:
    """The config of a source that writes topics of its domain and no other.

    Its login may write the topic of its positions as well.
    """
    return {
        **_with_last(config, OWN),
        f"transforms.{OWN}.type": OWN_TOPICS,
        f"transforms.{OWN}.domain": domain,
    }


def _with_last(config: Mapping[str, str], name: str) -> dict[str, str]:
    """A config with one more transform, which sees what the others have made of a record."""
    return {**config, "transforms": ",".join((*items(config.get("transforms", "")), name))}


def _placeholder(connector: str) -> str:
    """A text that no row holds by chance."""
    return f"mesh_unavailable_{hashlib.sha256(connector.encode()).hexdigest()[:32]}"
