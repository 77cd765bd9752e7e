"""Which columns arrive, by their types, and the page that says so."""

from pathlib import Path

import pytest

from processors.connect.postgres_types import ARRIVALS, Column, fault, losses, page

PAGE = Path("docs/reference/postgres-types.md")


def column(kind: str, declared: str = "", **more: object) -> Column:
    found = {"base": "", "is_generated": False, "dimensions": 0, **more}
    return Column("public.t", "c", kind, declared=declared or kind, **found)  # type: ignore[arg-type]


def test_the_page_is_made_of_what_is_checked() -> None:
    made = "\n".join(page()) + "\n"
    assert made == PAGE.read_text(), (
        "run `python -m processors.connect.postgres_types > docs/reference/postgres-types.md`"
    )


def test_each_type_is_there_once_and_arrives() -> None:
    kinds = [one.kind for one in ARRIVALS]
    assert len(set(kinds)) == len(kinds)
    assert not [one for one in kinds if fault(column(one, base="text"), precise=True)]


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (column("composite", "public.pair"), "of the type public.pair"),
        (column("name"), "of the type name"),
        (column("domain", "public.moment", base="timestamptz"), "of the type public.moment"),
        (column("integer", is_generated=True), "is generated"),
        (column("integer[]", dimensions=2), "an array of 2 dimensions"),
        (column("numeric", "numeric(5,-2)"), "a scale outside of the precision"),
        (column("numeric[]", "numeric(5,-2)[]"), "is a numeric(5,-2), and no reader"),
        (
            column("domain", "public.money", base="numeric", made_of="numeric(2,5)"),
            "is a numeric(2,5), and no reader",
        ),
        (column("uuid", namesake="public.uuid"), "takes public.uuid"),
        (column("numeric", "numeric(3,5)"), "a scale outside of the precision"),
    ],
)
def test_what_would_not_arrive_is_told(found: Column, told: str) -> None:
    assert told in str(fault(found, precise=True))


def test_a_scale_above_the_precision_arrives_as_text_and_one_below_zero_does_not() -> None:
    assert fault(column("numeric", "numeric(3,5)"), precise=False) is None
    assert "2000 digits" in str(fault(column("numeric", "numeric(5,-2)"), precise=False))
    assert fault(column("numeric", "numeric(20,4)"), precise=True) is None


def test_what_of_the_values_is_lost_is_told_for_each_type_with_some_columns() -> None:
    days = [column("date")._replace(name=f"d{at}") for at in range(7)]
    of_days, of_bits = losses([column("text"), *days, column("bit varying")])
    assert of_days.startswith("values of public.t.d0, public.t.d1, public.t.d2, public.t.d3, ")
    assert "public.t.d4 and 2 more (date) that do not arrive as they are: infinity" in of_days
    assert of_bits.startswith("values of public.t.c (bit varying) that do not arrive as they are: ")


def test_rows_that_are_lost_by_their_key_are_told() -> None:
    keys = [column(kind, is_key=True) for kind in ("date", "integer", "bit varying")]
    told = losses([*keys, column("interval")])
    of_days, of_bits = (one for one in told if "is in a key" in one)
    assert of_days.startswith("public.t.c (date) is in a key: by such values two rows can arrive")
    assert of_bits.startswith("public.t.c (bit varying) is in a key: ")


@pytest.mark.parametrize(
    ("kind", "declared", "is_cut"),
    [
        ("timestamp without time zone", "timestamp without time zone", True),
        ("time without time zone", "time(4) without time zone", True),
        ("timestamp without time zone", "timestamp(3) without time zone", False),
        ("time without time zone", "time(0) without time zone", False),
        ("time with time zone", "time with time zone", False),
    ],
)
def test_times_that_are_captured_in_milliseconds_are_told(
    kind: str, declared: str, is_cut: bool
) -> None:
    found = column(kind, declared)
    told = "times of public.t.c are cut to milliseconds"
    assert (told in losses([found], in_milliseconds=True)) is is_cut
    assert told not in losses([found])
