"""Which fields of a connector's records are which columns, through its transforms. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from mesh_events.errors import InvalidValueError
from projections.connectors.values import items

_VALUE = "$Value"
_AS_THEY_ARE = {
    "Cast$Value",
    "DropHeaders",
    "Filter",
    "InsertHeader",
    "RegexRouter",
    "TimestampConverter$Value",
    "ValueToKey",
}
"""Those that leave a record's fields and their names."""
_NAMING = tuple(
    f"{name}{_VALUE}"
    for name in ("Cast", "HeaderFrom", "MaskField", "ReplaceField", "TimestampConverter")
)
"""Those that name fields of a record. A change has the fields of its row within others."""
_UNWRAP, _OUTBOX = "ExtractNewRecordState", "EventRouter"
_INSERTED = ("topic", "partition", "offset", "timestamp", "static")
_NO_PREFIX = "__"
_DELETING = ("delete.tombstone.handling.mode", "delete.handling.mode")
_DELETED = "__deleted"
"""Whether a row was deleted: Debezium adds it where deletions are rewritten."""

Settings = Mapping[str, str]
Move = Callable[[str], str | None]
"""A field's name on the other side of a transform; None where there is none."""


def blind(config: Settings) -> list[str]:
    """Transforms that name fields of rows and get changes, in which they find none of them.

    They pass a change on as it is, with the fields that they were to mask or to leave out.
    """
    found = []
    for name, kind, of in _transforms(config):
        if kind in (_OUTBOX, _UNWRAP) and "predicate" not in of:
            break
        if kind in _NAMING:
            found.append(name)
    return found


def sunk(
    config: Settings, topic: str, fields: Iterable[str], *, is_change: bool = False
) -> dict[str, str]:
    """Column of the table -> the field of the topic that it is made of.

    Args:
        config: of a sink.
        topic: which of its topics.
        fields: of the topic's rows.
        is_change: whether its values are changes of rows.

    Raises:
        InvalidValueError: a transform makes other fields.
    """
    if is_change:
        _require_rows(config)
    forward = [move for move, _ in _moves(config)]
    found = {after: one for one in fields if (after := _through(forward, one)) is not None}
    return {after: one for after, one in found.items() if _is_taken(config, topic, after)}


def captured(config: Settings, fields: Iterable[str]) -> dict[str, str]:
    """Field of the topic -> the column of the table that it is made of.

    Args:
        config: of a connector that captures tables.
        fields: of the topic's rows.

    Raises:
        InvalidValueError: a transform makes other fields.
    """
    _require_rows(config)
    backward = [move for _, move in reversed(_moves(config))]
    return {one: before for one in fields if (before := _through(backward, one)) is not None}


def has_other_keys(config: Settings) -> bool:
    """Whether a transform changes a record's key."""
    return any(kind.endswith("$Key") or kind == "ValueToKey" for _, kind, _ in _transforms(config))


def _require_rows(config: Settings) -> None:
    if names := blind(config):
        raise InvalidValueError(
            f"its transform {names[0]} finds no field of a row in a change, which it passes on"
        )


def _transforms(config: Settings) -> Iterator[tuple[str, str, Settings]]:
    """(name, class without its package, settings) of each transform, in their order."""
    for name in items(config.get("transforms", "")):
        begin = f"transforms.{name}."
        of = {one[len(begin) :]: value for one, value in config.items() if one.startswith(begin)}
        yield name, of.get("type", "").rpartition(".")[2], of


def _through(moves: Iterable[Move], name: str) -> str | None:
    found: str | None = name
    for move in moves:
        if found is not None:
            found = move(found)
    return found


def _is_taken(config: Settings, topic: str, field: str) -> bool:
    """Whether a sink's own lists of fields have it."""
    taken, left = (items(config.get(f"field.{one}.list", "")) for one in ("include", "exclude"))
    both = {field, f"{topic}:{field}"}
    return (not taken or bool(both & {*taken})) and not both & {*left}


def _moves(config: Settings) -> list[tuple[Move, Move]]:
    """(from topic to table, from table to topic) of each transform that changes fields."""
    found = []
    for name, kind, of in _transforms(config):
        if kind in _AS_THEY_ARE or kind.endswith("$Key"):
            continue
        pair = _pair(kind, of)
        if pair is None or "predicate" in of:
            raise InvalidValueError(f"its transform {name} ({kind}) makes other fields")
        found.append(pair)
    return found


def _pair(kind: str, of: Settings) -> tuple[Move, Move] | None:
    """What a transform does to names; None where that is not known."""
    if kind == f"ReplaceField{_VALUE}":
        return _replacing(of)
    if kind == f"InsertField{_VALUE}":
        return _without(of.get(f"{one}.field", "").rstrip("!?") for one in _INSERTED)
    if kind == f"MaskField{_VALUE}":
        return _without(items(of.get("fields", "")))
    if kind == _UNWRAP:
        prefix = of.get("add.fields.prefix", _NO_PREFIX)
        added = items(of.get("add.fields", ""))
        names = (one.partition(":")[2] or one.replace(".", "_") for one in added)
        made = [f"{prefix}{one}" for one in names]
        if any(of.get(one, "").startswith("rewrite") for one in _DELETING):
            made.append(_DELETED)
        return _without(made)
    return None


def _without(names: Iterable[str]) -> tuple[Move, Move]:
    made = {one for one in names if one}

    def move(name: str) -> str | None:
        return None if name in made else name

    return move, move


def _replacing(of: Settings) -> tuple[Move, Move]:
    pairs = (one.partition(":") for one in items(of.get("renames", "")))
    renamed = {before: after for before, _, after in pairs}
    back = {after: before for before, after in renamed.items()}
    taken, left = (set(items(of.get(one, ""))) for one in ("include", "exclude"))

    def is_kept(name: str) -> bool:
        return (not taken or name in taken) and name not in left

    def forward(name: str) -> str | None:
        return renamed.get(name, name) if is_kept(name) else None

    def backward(name: str) -> str | None:
        before = back.get(name, None if name in renamed else name)
        return before if before is not None and is_kept(before) else None

    return forward, backward
