"""Kafka Connect: its REST API, the secrets that it resolves, and whether a config is sound.

What a connector is to be, the log says; the keeper of connectors makes it so. `WholeRows.scala` is
the transformation that runs first in every connector which captures tables, `OwnTopics.scala` the
one that runs last in every source, `PlainNames.scala` the one that runs last in every JDBC sink.
`LoginFilter.scala` stands before the REST API. `PatchConnect.scala` changes two of Connect's
classes: `NullFields.scala` keeps it from taking the default of a field for its null, `Traces.scala`
keeps a record's text from writing lines into the trace of a failure. `PatchDriver.scala` changes
PostgreSQL's driver in Connect's plugins: `Answers.scala` bounds what it keeps of an answer, and
`Patience.scala` for how long it waits for a login and an answer as a whole.
"""

from pathlib import Path

from projections.connector_rows import OWN_TOPICS, PLAIN_NAMES, WHOLE_ROWS

_SOURCES = (
    "LoginFilter",
    "NullFields",
    "OwnTopics",
    "PatchConnect",
    "PlainNames",
    "Traces",
    "WholeRows",
)
SOURCES = tuple(Path(__file__).parent / f"{one}.scala" for one in _SOURCES)
TRANSFORMATIONS = (OWN_TOPICS, PLAIN_NAMES, WHOLE_ROWS)
"""The transformations' classes."""
REST_EXTENSION = "mesh.LoginFilterExtension"
"""The class that has every request show a login before its body is read."""
PATCH = "mesh.PatchConnect"
"""The main class that writes classes of Connect's below a folder."""
_DRIVER_SOURCES = ("Answers", "Patience", "PatchDriver")
DRIVER_SOURCES = tuple(Path(__file__).parent / f"{one}.scala" for one in _DRIVER_SOURCES)
DRIVER_PATCH = "mesh.PatchDriver"
"""The main class that writes classes of PostgreSQL's driver below a folder."""
