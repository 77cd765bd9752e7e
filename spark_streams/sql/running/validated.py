"""Strings that have to match a pattern (see `mesh_events.schema.patterns`), as Spark compares them.

Who reads a stream by a statement gets only what matches, from its first character to its last, by
the same engine as in Python. What does not match is told with its pattern, but never the value:
that may be somebody's name.
"""

from collections.abc import Sequence
from typing import Any

from mesh_events.schema.patterns import Each, places
from mesh_events.schema.size import SchemaTooLargeError
from spark_streams.jvm import MATCHES

_DEEPEST = 36
"""Levels on the way to a string: Spark's client takes 100 in an expression, some for each."""


def require_shallow(schema: Any, subject: str) -> None:
    """Refuse a schema whose strings with patterns lie too deep to be compared.

    Raises SchemaTooLargeError.
    """
    for place in places(schema):
        levels = sum(2 if isinstance(one, Each) else 1 for one in place.steps)
        if levels > _DEEPEST:
            raise SchemaTooLargeError(
                f"{subject}: {place.path} has a pattern and lies too deep to be compared in a "
                f"statement ({levels} levels, at most {_DEEPEST}; two for an array or a map)"
            )


def fault(value: Any, schema: Any) -> Any:
    """Why a value may not pass, as a column of text: null if it may, or if nothing is asked of it.

    Args:
        value: column of the value, as the schema has it.
        schema: its Avro schema, parsed, with patterns that `require_patterns` has not refused.
    """
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import StringType

    found: Any = None
    for place in places(schema):
        wrong = _wrong(value, place.steps, str(place.pattern))
        reason = f.lit(f"{place.path} does not match its pattern {place.pattern}")
        found = f.when(wrong, reason) if found is None else found.when(wrong, reason)
    return f.lit(None).cast(StringType()) if found is None else found


def _wrong(value: Any, steps: Sequence[str | Each], pattern: str) -> Any:
    """Column of whether a string that the steps lead to does not match."""
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import BinaryType

    if not steps:
        text = value.cast(BinaryType())
        return value.isNotNull() & ~f.call_function(MATCHES, text, f.lit(pattern))
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        return _wrong(value.getField(step), rest, pattern)
    values = value if step is Each.ITEM else f.map_values(value)
    there = f.exists(values, lambda one: _wrong(one, rest, pattern))
    return f.coalesce(there, f.lit(False))
