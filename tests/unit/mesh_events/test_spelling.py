"""What is suggested for a name that is not there."""

import pytest

from mesh_events.spelling import asked, nearest

IDS = ["east.users", "east.clicks", "east.click-users", "west.clicks-named", "west.orders"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("east.user", "east.users"),
        ("west.users", "east.users"),
        ("eest.users", "east.users"),
        ("east.Clicks", "east.clicks"),
        ("west.clickz-named", "west.clicks-named"),
        ("users", "east.users"),
        ("east.nothing-like-it", None),
        ("west.zzz", None),
        ("", None),
    ],
)
def test_ids_are_alike_by_their_names_and_not_by_their_domain(
    name: str, expected: str | None
) -> None:
    assert nearest(name, IDS) == expected


def test_names_without_a_domain_are_compared_as_they_are() -> None:
    assert nearest("statsu", ["ip", "status"]) == "status"
    assert nearest("statsu", []) is None
    assert asked("statsu", ["status"]) == "did you mean status? Else "
    assert asked("zz", ["status"]) == ""
