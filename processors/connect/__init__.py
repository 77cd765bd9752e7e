"""Kafka Connect: its REST API, the secrets that it resolves, and whether a config is sound.

What a connector is to be, the log says; the keeper of connectors makes it so. `WholeRows.scala` is
the transformation that runs first in every connector which captures tables.
"""

from pathlib import Path

from projections.connector_rows import WHOLE_ROWS

SOURCE = Path(__file__).parent / "WholeRows.scala"
TRANSFORMATION = WHOLE_ROWS
"""The transformation's class."""
