"""Kafka Connect: its REST API, the secrets that it resolves, and whether a config is sound.

What a connector is to be, the log says; the keeper of connectors makes it so. `WholeRows.scala` is
the transformation that runs first in every connector which captures tables, `OwnTopics.scala` the
one that runs last in every source; before all others of a JDBC sink runs `SoundChanges.scala`,
behind them `PlainNames.scala` and `ExactValues.scala`.
`LoginFilter.scala` stands before the REST API. `PatchConnect.scala` changes two of Connect's
classes: `NullFields.scala` keeps it from taking the default of a field for its null, `Traces.scala`
keeps a record's text from writing lines into the trace of a failure. `PatchConsumer.scala` changes
three of Kafka's consumer: `BoundedPolls.scala` bounds what a poll unpacks, `SkippedRecords.scala`
passes over no record that was deleted before it was read. `PatchLetters.scala`
changes Connect's reporter: `DeadLetters.scala` waits until a dead letter is written.
`PatchDriver.scala` changes PostgreSQL's driver in Connect's plugins: `Answers.scala` bounds what it
keeps of an answer, `Patience.scala` for how long it waits for a login and a question as a
whole, and `Publications.scala` refuses changes that come without their publication.
`PatchSink.scala` changes Debezium's sink: `ExactColumns.scala` refuses columns that round, and by
`ColumnValues.scala` values that one of them has not; `OneWriter.scala` keeps a task from writing
what another one has got.
`PatchDebezium.scala` changes its PostgreSQL connector: `BoundedMatches.scala` bounds for how long
a text of a database is compared with a pattern, `ConstantDefaults.scala` takes no value out of a
default that has to be computed, `Identities.scala` keeps a table out of a publication by which its
UPDATE and DELETE would fail, `LostSlots.scala` refuses a slot that PostgreSQL has given up,
`LogPositions.scala` a position that the database's log has not come to,
`Keepalives.scala` lets heartbeats confirm what was read of the log, `CountedPositions.scala` counts
a transaction's messages, `WholeMessages.scala` keeps the records of one together,
`RenamedTables.scala` refuses changes of a captured table under another name, and
`WholePayloads.scala` leaves nothing of an outbox's payload out.
`PatchConverter.scala` changes the Avro converter: `BoundedSchemas.scala` bounds what all
connectors keep of schemas, `SmallNumbers.scala` cuts no number. `PatchResolver.scala` changes what
asks the registry: `RegistryAnswers.scala` makes no dead letter of a registry that is away,
`KeptKeys.scala` refuses a key that has other fields than those in the topic.
`PatchAvro.scala` changes Avro beside it: `StrictTexts.scala` refuses bytes that are no text; by
`PatchDecoder.scala`, which Spark's servers have as well, `StrictNumbers.scala` refuses numbers that
their type has not. All of these write by `PatchedClass.scala`.
"""

from dataclasses import dataclass
from pathlib import Path

from projections.connectors.own_transforms import (
    EXACT_VALUES,
    OWN_TOPICS,
    PLAIN_NAMES,
    SOUND_CHANGES,
    WHOLE_ROWS,
)

_SOURCES = (
    "BoundedPolls",
    "DeadLetters",
    "ExactValues",
    "JsonTexts",
    "KnownTypes",
    "LoginFilter",
    "NullFields",
    "OwnTopics",
    "PatchConnect",
    "PatchConsumer",
    "PatchLetters",
    "PatchedClass",
    "PlainNames",
    "SkippedRecords",
    "SoundChanges",
    "Times",
    "Traces",
    "WholeRows",
)


def _scala(*names: str) -> tuple[Path, ...]:
    return tuple(Path(__file__).parent / f"{one}.scala" for one in names)


SOURCES = _scala(*_SOURCES)
TRANSFORMATIONS = (EXACT_VALUES, OWN_TOPICS, PLAIN_NAMES, SOUND_CHANGES, WHOLE_ROWS)
"""The transformations' classes."""
REST_EXTENSION = "mesh.LoginFilterExtension"
"""The class that has every request show a login before its body is read."""
PATCH = "mesh.PatchConnect"
"""The main class that writes classes of Connect's below a folder."""


@dataclass(frozen=True, slots=True)
class Patch:
    """Classes in the place of a plugin's own.

    jars: the jars that they are made of, below the folder of plugins.
    sources: files of Scala.
    main: the main class that writes them below a folder.
    """

    jars: str
    sources: tuple[Path, ...]
    main: str


PATCHED_CLASS = Path(__file__).parent / "PatchedClass.scala"
"""How a class is changed as it is copied: for whoever patches a server's classes."""
DECODER = _scala("PatchDecoder", "StrictNumbers")
"""What Avro's decoder refuses: for whoever reads records by Avro's Java library."""
PATCHES = (
    Patch(
        "*/postgresql-*.jar",
        _scala("Answers", "PatchDriver", "PatchedClass", "Patience", "Publications"),
        "mesh.PatchDriver",
    ),
    Patch(
        "*/debezium-connector-postgres-*.jar",
        _scala(
            "BoundedMatches",
            "ConstantDefaults",
            "CountedPositions",
            "Identities",
            "Keepalives",
            "LogPositions",
            "LostSlots",
            "PatchDebezium",
            "PatchedClass",
            "RenamedTables",
            "WholeMessages",
            "WholePayloads",
        ),
        "mesh.PatchDebezium",
    ),
    Patch(
        "*/debezium-connector-jdbc-*.jar",
        _scala("ColumnValues", "ExactColumns", "OneWriter", "PatchedClass", "PatchSink"),
        "mesh.PatchSink",
    ),
    Patch(
        "*/avro-1.*.jar",
        (*_scala("PatchAvro", "PatchedClass", "StrictTexts"), *DECODER),
        "mesh.PatchAvro",
    ),
    Patch(
        "*/apicurio-registry-utils-converter-*.jar",
        _scala("BoundedSchemas", "PatchConverter", "PatchedClass", "SmallNumbers"),
        "mesh.PatchConverter",
    ),
    Patch(
        "*/apicurio-registry-schema-resolver-*.jar",
        _scala("KeptKeys", "PatchResolver", "PatchedClass", "RegistryAnswers"),
        "mesh.PatchResolver",
    ),
)
