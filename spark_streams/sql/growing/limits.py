"""The check of each record: what a statement may need for it, against what it may have.

Most records are so small that their length alone is enough. Of any other one the sizes of its
columns are looked at, which takes time that is linear in the record.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from spark_streams.sql.growing.amount import RECORD, Amount, Measure, Need, Symbol, Term
from spark_streams.sql.growing.rules import Peak, peak
from spark_streams.sql.text.tree import Node

BYTES = "__bytes"
"""Column with the bytes of a record, and of the rows that were found for it."""
MOST_BYTES = 16 * 1024 * 1024
"""Bytes of a value, and of all columns of a record together."""
MOST_ELEMENTS = 2 * 1024 * 1024
"""Elements of arrays and maps."""
MOST_STEPS = 1_000_000_000
"""Steps of all columns of a record: about a second of one core."""
LONGEST_RECORD = 2**31


def smallest(found: Peak) -> int:
    """Bytes of the largest record for which nothing is near a limit, -1 if there is none."""
    found = Peak(found.size.coarse(), found.elements.coarse(), found.steps.coarse())
    low, high = -1, LONGEST_RECORD
    while low < high:
        middle = (low + high + 1) // 2
        if _fits(found, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _fits(found: Peak, size: int) -> bool:
    return (
        found.size.at(size) <= MOST_BYTES
        and found.elements.at(size) <= MOST_ELEMENTS
        and found.steps.at(size) <= MOST_STEPS
    )


def _share(found: Need, size: int) -> Fraction:
    """How much of what it may have is needed for a record of so many bytes."""
    return max(
        Fraction(found.size.at(size), MOST_BYTES),
        Fraction(found.elements.at(size), MOST_ELEMENTS),
        Fraction(found.steps.at(size), MOST_STEPS),
    )


def cause(found: Peak, size: int) -> str:
    """The function that needs most of the limits for a record of so many bytes; "" if none does."""
    shares = [(name, _share(need, size)) for name, need in found.calls]
    most = max((share for _, share in shares), default=Fraction())
    # what holds its value needs about as much
    return next((name for name, share in shares if share > most / 2), "")


def longest_names(schemas: Iterable[str]) -> int:
    """Bytes of the longest path of names of fields in Avro schemas."""
    return max((_longest(json.loads(one), {}) for one in schemas), default=0)


def _longest(schema: Any, known: dict[str, Any]) -> int:
    if isinstance(schema, list):
        return max((_longest(one, known) for one in schema), default=0)
    if not isinstance(schema, dict):
        return known.get(schema, 0) if isinstance(schema, str) else 0
    kind = schema["type"]
    if kind == "record":
        each = [
            len(one["name"].encode()) + _longest(one["type"], known) for one in schema["fields"]
        ]
        most = max(each, default=0)
        known[schema["name"]] = most
        return most
    inside = [schema.get("items"), schema.get("values"), kind if kind != schema else None]
    return max(_longest(one, known) for one in inside)


def length(column: Any) -> Any:
    """Bytes of a column or of that name, 0 for null."""
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import LongType

    return f.coalesce(f.octet_length(column), f.lit(0)).cast(LongType())


def checked(
    rows: Any, nodes: Sequence[Node], columns: Mapping[str, str], names: int, among: Any = None
) -> Any:
    """Rows with a fault for each record that `nodes` would need too much for; see `fault`.

    `among` is a column of whether they are computed for a record; None: they are for each.
    """
    from pyspark.sql.connect import functions as f

    why = fault(nodes, columns, f.col(BYTES), names)
    if why is None:
        return rows
    why = why if among is None else f.when(among, why)
    return rows.withColumn("fault", f.coalesce(f.col("fault"), why))


def fault(
    nodes: Sequence[Node], columns: Mapping[str, str], total: Any, names: int = 0
) -> Any | None:
    """Why a record is not computed, as a column of text: null if it is; None if each one can be.

    Args:
        nodes: resolved expressions whose values are there at the same time.
        columns: alias of a source -> the frame's column with its struct.
        total: column with the bytes of the record, and of the rows found for it.
        names: see `longest_names`.
    """
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import StringType

    found = peak(nodes, names)
    most = smallest(found)
    if most >= LONGEST_RECORD:
        return None
    sizes = _Sizes(columns, total)
    beyond = [
        sizes.amount(amount) > f.lit(float(limit))
        for amount, limit in (
            (found.size, MOST_BYTES),
            (found.elements, MOST_ELEMENTS),
            (found.steps, MOST_STEPS),
        )
        if amount.coarse().at(LONGEST_RECORD) > limit
    ]
    is_beyond = beyond[0]
    for one in beyond[1:]:
        is_beyond = is_beyond | one
    by = cause(found, most + 1)
    reason = f.concat(
        f.lit(f"{by or 'the result'} would need more than the limits for this record of "),
        total.cast(StringType()),
        f.lit(
            f" bytes: {MOST_BYTES} bytes, {MOST_ELEMENTS} elements or {MOST_STEPS} steps: shorten "
            "what it is made of, or leave such records out in a statement before"
        ),
    )
    # one in the other: Spark may compute both sides of an AND before it looks at the first
    return f.when(total > f.lit(most), f.when(is_beyond, reason))


class _Sizes:
    """Columns with the sizes of what a record holds."""

    def __init__(self, columns: Mapping[str, str], total: Any) -> None:
        self._columns, self._total = columns, total

    def amount(self, amount: Amount) -> Any:
        from pyspark.sql.connect import functions as f

        terms = [self._term(term, factor) for term, factor in sorted_terms(amount)]
        while len(terms) > 1:
            # side by side, and not one in the other: a message to Spark has a hundred levels
            pairs = [terms[at : at + 2] for at in range(0, len(terms), 2)]
            terms = [one[0] + one[1] if len(one) > 1 else one[0] for one in pairs]
        return terms[0] if terms else f.lit(0.0)

    def _term(self, term: Term, factor: int) -> Any:
        from pyspark.sql.connect import functions as f

        found = f.lit(float(min(factor, 2**1000)))
        for one in term:
            found = found * self._size(one)
        return found

    def _size(self, symbol: Symbol) -> Any:
        """The measure as a double, 0 for null."""
        from pyspark.sql.connect import functions as f
        from pyspark.sql.types import DoubleType, StringType

        if symbol == RECORD:
            return self._total.cast(DoubleType())
        column = f.col(self._columns[symbol.alias])
        for name in symbol.path:
            column = column.getField(name)
        text = column.cast(StringType())
        size = f.octet_length(text)
        if symbol.measure is Measure.ELEMENTS:
            # elements are separated by commas in the text of an array or map
            size = size - f.octet_length(f.replace(text, f.lit(","), f.lit(""))) + f.lit(1)
        return f.coalesce(size.cast(DoubleType()), f.lit(0.0))


def sorted_terms(amount: Amount) -> list[tuple[Term, int]]:
    """The terms in an order that is the same each time."""
    return sorted(amount.terms.items(), key=lambda one: (len(one[0]), repr(one[0])))
