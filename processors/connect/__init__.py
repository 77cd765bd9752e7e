"""Kafka Connect: its REST API, the secrets that it resolves, and whether a config is sound.

What a connector is to be, the log says; the keeper of connectors makes it so. `WholeRows.scala` is
the transformation that runs first in every connector which captures tables, `PlainNames.scala` the
one that runs last in every JDBC sink.
"""

from pathlib import Path

from projections.connector_rows import PLAIN_NAMES, WHOLE_ROWS

SOURCES = tuple(Path(__file__).parent / f"{one}.scala" for one in ("PlainNames", "WholeRows"))
TRANSFORMATIONS = (PLAIN_NAMES, WHOLE_ROWS)
"""The transformations' classes."""
