"""The whole vocabulary by name: what may stand on the log and on the row topics."""

from mesh_events import facts, intents
from mesh_events.connectors import CONNECTOR_FACTS, CONNECTOR_INTENTS
from mesh_events.decisions import DECISIONS, FOUNDATION
from mesh_events.facts import Fact
from mesh_events.intents import Intent
from mesh_events.meta import Event
from mesh_events.rows import ROWS, Row
from mesh_events.statements import STATEMENT_FACTS, STATEMENT_INTENTS

INTENTS: tuple[type[Intent], ...] = (*intents.INTENTS, *STATEMENT_INTENTS, *CONNECTOR_INTENTS)
FACTS: tuple[type[Fact], ...] = (*facts.FACTS, *STATEMENT_FACTS, *CONNECTOR_FACTS)

EVENTS: dict[str, type[Event]] = {
    event.type_name(): event for event in (*FOUNDATION, *DECISIONS, *INTENTS, *FACTS)
}
"""Event name -> type, for every record that the governance log can hold."""

ROW_TYPES: dict[str, type[Row]] = {row.type_name(): row for row in ROWS}
"""Row name -> type, for every record of the projections' topics."""

ALL: dict[str, type[Event] | type[Row]] = {**EVENTS, **ROW_TYPES}
