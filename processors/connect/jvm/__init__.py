"""Scala that runs in Kafka Connect: transformations, and classes in the place of others' own.

What lives here: a folder for each jar that is made, whose `Patch...` writes the changed classes by
`PatchedClass.scala`, and whose other sources are what these ask.
What does not: how they are compiled (`local_platform.jars.scala_jars`), and which connectors have
which transformations (`projections.connectors.own_transforms`).
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

_FOLDER = Path(__file__).parent
PATCHED_CLASS = _FOLDER / "PatchedClass.scala"
"""How a class is changed as it is copied: for whoever patches a server's classes."""


def _sources(folder: str) -> tuple[Path, ...]:
    return (PATCHED_CLASS, *sorted((_FOLDER / folder).glob("*.scala")))


SOURCES = _sources("worker")
TRANSFORMATIONS = (EXACT_VALUES, OWN_TOPICS, PLAIN_NAMES, SOUND_CHANGES, WHOLE_ROWS)
"""The transformations' classes."""
REST_EXTENSION = "mesh.LoginFilterExtension"
"""The class that has every request show a login before its body is read."""
PATCH = "mesh.PatchConnect"
"""The main class that writes classes of Connect's below a folder."""
DECODER = tuple(_FOLDER / "avro" / f"{one}.scala" for one in ("PatchDecoder", "StrictNumbers"))
"""What Avro's decoder refuses: for whoever reads records by Avro's Java library."""


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


PATCHES = (
    Patch("*/postgresql-*.jar", _sources("driver"), "mesh.PatchDriver"),
    Patch("*/debezium-connector-postgres-*.jar", _sources("debezium"), "mesh.PatchDebezium"),
    Patch("*/debezium-connector-jdbc-*.jar", _sources("sink"), "mesh.PatchSink"),
    Patch("*/avro-1.*.jar", _sources("avro"), "mesh.PatchAvro"),
    Patch(
        "*/apicurio-registry-utils-converter-*.jar", _sources("converter"), "mesh.PatchConverter"
    ),
    Patch("*/apicurio-registry-schema-resolver-*.jar", _sources("resolver"), "mesh.PatchResolver"),
)
