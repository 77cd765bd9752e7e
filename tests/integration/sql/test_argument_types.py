"""Each function with a column of each type as each of its arguments, against Spark's own SQL."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mesh_events.errors import RefusedError
from tests.integration.sql.oracle_cases import CASES
from tests.integration.sql.test_oracle import COLUMNS, differences, ours, rows
from tests.selection import drawn

__all__ = ["rows"]
pytestmark = pytest.mark.platform

ARGUMENT = re.compile(r"(?<=[(,])( ?)([a-z]+)(?=[,)])")
BATCH = 50


def with_columns(text: str) -> Iterator[str]:
    """The text, with one column of it after the other replaced by one of each type."""
    for found in ARGUMENT.finditer(text):
        if found[2] in COLUMNS:
            for column in COLUMNS:
                yield text[: found.start(2)] + column + text[found.end(2) :]


def is_taken(text: str) -> bool:
    try:
        ours(text)
    except RefusedError:
        return False
    return True


def failing(texts: list[str], attempt: Callable[[list[str]], object]) -> Iterator[tuple[str, str]]:
    """(text, error) of each for which `attempt` raises."""
    try:
        attempt(texts)
    except Exception as error:  # noqa: BLE001 - whatever it is: which text it is of is looked for
        if len(texts) == 1:
            yield texts[0], str(error)[:200]
            return
        middle = len(texts) // 2
        yield from failing(texts[:middle], attempt)
        yield from failing(texts[middle:], attempt)


def compared(spark: Any, rows: Any, texts: list[str]) -> list[str]:
    """What differs, among the texts that Spark itself takes and finds values of."""

    def values(some: list[str]) -> None:
        spark.sql(f"SELECT {', '.join(some)} FROM oracle").collect()

    unusable = dict(failing(texts, values))
    good = [text for text in texts if text not in unusable]
    found: list[str] = []

    def compare(some: list[str]) -> None:
        found.extend(differences(spark, rows, some))

    fails = [f"{text}: {error}" for text, error in failing(good, compare)] if good else []
    return sorted({*found, *fails})


def test_a_column_of_any_type_as_an_argument_is_what_spark_makes_of_it(
    spark: Any, rows: Any
) -> None:
    made = {one for texts in CASES.values() for text in texts for one in with_columns(text)}
    texts = drawn(sorted(filter(is_taken, made)), 4 * BATCH)
    found: list[str] = []
    for start in range(0, len(texts), BATCH):
        found += compared(spark, rows, texts[start : start + BATCH])
    assert "\n".join(found) == ""
