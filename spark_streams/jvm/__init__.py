"""What of streaming SQL runs inside Spark's executors: tables that are looked up in memory.

What lives here: the Scala source of one SQL function, `TableLookup.scala`, and where it lies.
What does not: how it is compiled and put on a server's class path (`local_platform.own_jars`),
and what a statement asks it (`spark_streams.sql`).
Why not in Python: Python cannot run in Spark's real-time mode (decision 0011).
"""

from pathlib import Path

SOURCE = Path(__file__).parent / "TableLookup.scala"
FUNCTION = "mesh.TableLookup"
"""The class to be registered as a SQL function: (table's name, key, record's partition) -> row."""
CONFIG = "spark.mesh.table.secret."
"""Setting of the session that holds a table's properties, with the table's name behind it."""
