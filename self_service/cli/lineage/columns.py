"""Which column comes from which: through connectors and links as it is, through SQL as it says."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mesh_events.errors import MeshError
from projections.connectors import fields as connector_fields
from projections.image import Image
from projections.lineage import graph
from projections.lineage.graph import Branch
from projections.lineage.steps import EARLIER, Place, Step
from self_service.cli.framework.output import note

if TYPE_CHECKING:
    from mesh_events.schema.registry import Registry

KEY, _OF_KEY = "(key)", "key."
"""A key that is one value, and what stands before the columns of others: no field is called so."""
Origins = dict[str, list[tuple[Place, str]]]
"""Column of what a step fills -> the columns that it is made of, each with its topic or table."""


@dataclass
class Columns:
    """What is known of the columns of some steps; nothing where nobody asked."""

    steps: dict[Step, Origins] = field(default_factory=dict)

    @classmethod
    def of(cls, registry: "Registry", image: Image, trees: Iterable[Branch]) -> "Columns":
        """Ask the registry for the columns of all that stands in the trees."""
        found = {step for tree in trees for one in graph.walk(tree) for step, _ in one.steps}
        steps = sorted(found, key=lambda one: (one.kind, one.name, one.fills))
        return cls({step: _origins(registry, image, step) for step in steps})

    def at(self, place: Place) -> list[str]:
        """The columns of a topic or table that a step fills or is made of, in their order."""
        filled = [out for step, found in self.steps.items() if step.fills == place for out in found]
        used = [
            column
            for found in self.steps.values()
            for inputs in found.values()
            for where, column in inputs
            if where == place
        ]
        return list(dict.fromkeys([*filled, *used]))


def _origins(registry: "Registry", image: Image, step: Step) -> Origins:
    if step.state in EARLIER:
        note(f"the columns of an earlier text of {step.kind} {step.name} are no longer known")
        return {}
    try:
        if step.kind == "statement":
            return _of_statement(registry, image, step)
        if not step.reads:
            return {}
        [source] = step.reads
        if step.kind == "connector":
            return _of_connector(registry, image, step, source)
        columns, _ = _of_topic(registry, source[1])
        return {one: [(source, one)] for one in columns} | _keys(registry, source)
    except MeshError as error:
        note(f"the columns of {step.kind} {step.name} cannot be shown: {error}")
        return {}


def _of_statement(registry: "Registry", image: Image, step: Step) -> Origins:
    from spark_streams.sql.plan import planned
    from spark_streams.sql.text.parse import parse

    statement = image.statements[step.name]
    plan = planned(parse(statement.sql), statement.names, registry)
    topics = {alias: table.name for alias, table in plan.tables.items()}
    topics[plan.stream.alias] = statement.stream
    values = {
        out.name: [((statement.cluster, topics[one.alias]), one.column) for one in out.inputs]
        for out in plan.query.out
    }
    return values | _keys(registry, (statement.cluster, statement.stream))


def _of_connector(registry: "Registry", image: Image, step: Step, source: Place) -> Origins:
    """A table's columns are those of the topic beside it, as the transforms move them."""
    config = image.connectors[step.name].config
    if connector_fields.has_other_keys(config):
        note(f"connector {step.name} has transforms of keys, whose columns are not shown")
    if graph.is_outside(source):
        fields, _ = _of_topic(registry, step.fills[1])
        found = connector_fields.captured(config, fields)
        values = {column: [(source, before)] for column, before in found.items()}
        return values | _captured_keys(registry, config, step.fills[1], source)
    fields, is_change = _of_topic(registry, source[1])
    found = connector_fields.sunk(config, source[1], fields, is_change=is_change)
    values = {column: [(source, before)] for column, before in found.items()}
    if config.get("primary.key.mode") == "record_key":
        # the key's columns are those of the table's key; a key of one value is refused
        for key in _key_columns(registry, source[1]):
            if key != KEY:
                values.setdefault(key.removeprefix(_OF_KEY), []).append((source, key))
    return values


def _captured_keys(
    registry: "Registry", config: Mapping[str, str], topic: str, source: Place
) -> Origins:
    if connector_fields.has_other_keys(config):
        return {}
    keys = _key_columns(registry, topic)
    return {key: [(source, key.removeprefix(_OF_KEY))] for key in keys if key != KEY}


def _keys(registry: "Registry", source: Place) -> Origins:
    """A statement and a link write each record under the key that it has."""
    return {key: [(source, key)] for key in _key_columns(registry, source[1])}


def _key_columns(registry: "Registry", topic: str) -> list[str]:
    """The columns of a topic's keys, each behind `key.`; `(key)` where it is one value."""
    from spark_streams.sql.types.shape import KEY as WHOLE
    from spark_streams.sql.types.shape import key_columns

    subject = f"{topic}-key"
    versions = list(registry.versions(subject).values())
    columns = key_columns(versions[-1], subject) if versions else ()
    return [KEY if one == WHOLE else f"{_OF_KEY}{one}" for one in columns]


def _of_topic(registry: "Registry", topic: str) -> tuple[list[str], bool]:
    """The columns of a topic's values, of a change those of its row, and whether it is one.

    None without a schema.
    """
    from spark_streams.sql.types.shape import shape_of

    subject = f"{topic}-value"
    versions = list(registry.versions(subject).values())
    if not versions:
        return [], False
    shape = shape_of(versions[-1], subject)
    return [one.name for one in shape.row], shape.is_change
