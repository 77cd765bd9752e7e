"""Kafka Connect: its REST API, the secrets that it resolves, and whether a config is sound.

What a connector is to be, the log says; the keeper of connectors makes it so. `WholeRows.scala` is
the transformation that runs first in every connector which captures tables, `OwnTopics.scala` the
one that runs last in every source, `PlainNames.scala` the one that runs last in every JDBC sink.
`LoginFilter.scala` stands before the REST API.
"""

from pathlib import Path

from projections.connector_rows import OWN_TOPICS, PLAIN_NAMES, WHOLE_ROWS

_SOURCES = ("LoginFilter", "OwnTopics", "PlainNames", "WholeRows")
SOURCES = tuple(Path(__file__).parent / f"{one}.scala" for one in _SOURCES)
TRANSFORMATIONS = (OWN_TOPICS, PLAIN_NAMES, WHOLE_ROWS)
"""The transformations' classes."""
REST_EXTENSION = "mesh.LoginFilterExtension"
"""The class that has every request show a login before its body is read."""
