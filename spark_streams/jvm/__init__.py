"""What of streaming SQL runs inside Spark: lookups, patterns, attempts, and what a server lacks.

What lives here: the Scala sources of SQL functions, of the server that statements run on,
`DomainServer.scala`, which lacks what no statement may use, of `ClosedPorts.scala`, by which no
server has other ports than its own, of `BoundedCallers.scala`, by which connections without a token
take no files from queries, of `PatchSender.scala`, by which a producer sends nothing behind a batch
that it has given up, and of `PatchSpark.scala`, by which Spark's Kafka source reads
records with any time, numbers of JSON keep their digits, and no text takes long to become a
decimal; where they lie, and their names.
What does not: how they are compiled and put on a server's class path (`scala_jars`),
and what a statement asks them (`spark_streams.sql`).
Why not in Python: Python cannot run in Spark's real-time mode (decision 0011).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOURCES = tuple(
    Path(__file__).parent / name
    for name in (
        "Attempt.scala",
        "BoundedCallers.scala",
        "CanonicalKeys.scala",
        "ClosedPorts.scala",
        "ConnectServer.scala",
        "Decimals.scala",
        "DomainServer.scala",
        "PatchSender.scala",
        "PatchSpark.scala",
        "Patterns.scala",
        "TableLookup.scala",
        "ValidTexts.scala",
    )
)
PATCH = "mesh.PatchSpark"
"""The main class that writes classes of Spark's below a folder."""
CONNECT_SERVER = "mesh.ConnectServer"
"""The main class of the server that runs links."""
SERVER = "mesh.DomainServer"
"""The main class of a domain's server."""
RULES = "mesh.DomainRules"
"""Spark's session extension of a domain's server."""
CLOSED_PORTS = "org.apache.spark.mesh.ClosedPorts"
"""Spark's listener by which a server closes its ports for executors, of which it has none."""
ATTEMPT = "mesh_attempt"
"""(expression) -> struct<value, fault: string>; every session of a domain's server has it."""
VALID_TEXTS = "mesh_valid_texts"
"""(expression) -> its value; an error that `ATTEMPT` catches where a string in it is no UTF-8."""
LOOKUP = "mesh_lookup"
"""(table's name, key, record's partition) -> row."""
CANONICAL_KEY = "mesh_canonical_key"
"""(Avro schema of keys, key with its schema's id) -> whether Avro's writers give it these bytes."""
MATCHES = "mesh_matches"
"""(text in UTF-8, pattern) -> whether the whole text matches."""
SPLIT = "mesh_split"
"""(text, pattern, limit) -> parts, none of them null."""
FUNCTIONS: Mapping[str, tuple[str, str]] = {
    LOOKUP: ("mesh.TableLookup", "binary"),
    CANONICAL_KEY: ("mesh.IsCanonicalKey", "boolean"),
    MATCHES: ("mesh.MatchesPattern", "boolean"),
    "mesh_regexp_count": ("mesh.CountPattern", "int"),
    "mesh_regexp_extract": ("mesh.FindPattern", "string"),
    "mesh_regexp_extract_all": ("mesh.FindAllPattern", "array<string>"),
    "mesh_regexp_instr": ("mesh.LocatePattern", "int"),
    "mesh_regexp_like": ("mesh.HasPattern", "boolean"),
    "mesh_regexp_replace": ("mesh.ReplacePattern", "string"),
    SPLIT: ("mesh.SplitPattern", "array<string>"),
}
"""Name of a function -> (its class, type of its value)."""
CONFIG = "spark.mesh.table.secret."
"""Setting of the session that holds a table's properties, with the table's name behind it."""


def register(session: Any) -> None:
    """Register the functions with a session of Spark Connect."""
    from pyspark.sql.types import ArrayType, StringType

    for name, (kind, returned) in FUNCTIONS.items():
        # a type's text cannot say that no element is null
        parts = ArrayType(StringType(), containsNull=False)
        session.udf.registerJavaFunction(name, kind, parts if name == SPLIT else returned)
