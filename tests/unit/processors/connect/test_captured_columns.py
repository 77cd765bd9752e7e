"""Which columns are captured, and which of a key have to be."""

import pytest

from mesh_events.errors import RefusedError
from processors.connect.captured_columns import (
    require_arrival,
    require_keys,
    taken,
    told_without_keys,
    without_keys,
)
from processors.connect.postgres_types import Column


def column(name: str, kind: str = "text", *, is_key: bool = False) -> Column:
    return Column("public.a", name, kind, "", False, kind, 0, is_key=is_key)


KEYED = [column("id", is_key=True), column("part", is_key=True), column("note")]


@pytest.mark.parametrize(
    "config",
    [
        {"column.exclude.list": "public.a.part"},
        {"column.include.list": "public.a.id,public.a.note"},
    ],
)
def test_a_key_of_which_a_column_is_left_out_is_refused(config: dict[str, str]) -> None:
    captured = taken(KEYED, config, [])
    with pytest.raises(RefusedError, match=r"public\.a\.part is of the primary key") as refused:
        require_keys(KEYED, captured, config)
    assert refused.value.code == "key_not_captured"
    require_keys(KEYED, taken(KEYED, {}, []), {})


@pytest.mark.parametrize("kind", ["macaddr8[]", "money"])
def test_a_key_column_that_does_not_arrive_is_refused_without_the_advice_to_leave_it_out(
    kind: str,
) -> None:
    columns = [column("id", kind, is_key=True)]
    with pytest.raises(RefusedError, match=r"public\.a\.id is of the type") as refused:
        require_keys(columns, columns, {})
    assert refused.value.code == "key_not_captured"
    assert "column.exclude.list" not in str(refused.value)
    with pytest.raises(RefusedError, match=r"--set column\.exclude\.list=public\.a\.id"):
        require_arrival([column("id", kind)], {})


def test_tables_without_a_primary_key_are_told() -> None:
    assert told_without_keys(without_keys(KEYED)) == []
    [told] = told_without_keys(without_keys([*KEYED, column("n")._replace(table="public.b")]))
    assert told.startswith("records of public.b have no keys")
