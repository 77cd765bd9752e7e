"""The page about functions is that of the table."""

from pathlib import Path

from spark_streams.sql.reference import page

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "sql-functions.md"


def test_the_page_has_every_function_that_may_be_called() -> None:
    hint = "run `python -m spark_streams.sql.reference > docs/reference/sql-functions.md`"
    assert PAGE.read_text() == page(), hint
