import re
from pathlib import Path

import pytest

from mesh_events.errors import InvalidValueError
from mesh_events.intents import AccessDenied
from projections.access import State
from self_service.cli.framework.exits import NotFoundError, UsageError
from self_service.cli.mesh import lookup
from tests import sample_history as story
from tests.memory_log import MemoryLog

ROOT = Path(__file__).parents[4]


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.published(found)
    return found


def test_a_request_is_found_by_id_prefix_offset_and_pair(log: MemoryLog) -> None:
    asked = story.request(log)
    story.request(log, "north")
    offset = log.image.access.requests[asked].offset
    for given in [
        (asked, None, None),
        (asked.upper(), None, None),
        (asked[:-1], None, None),
        (f"#{offset}", None, None),
        (None, story.PRODUCT, "west.app"),
        (None, None, "west.app"),
    ]:
        assert lookup.request(log.image, *given).request == asked


def test_several_fitting_requests_are_named_and_none_is_chosen(log: MemoryLog) -> None:
    first, second = story.request(log), story.request(log, "north")
    with pytest.raises(UsageError) as told:
        lookup.request(log.image, None, story.PRODUCT, None)
    assert first in str(told.value)
    assert second in str(told.value)


def test_a_pair_means_its_open_request_and_else_the_latest(log: MemoryLog) -> None:
    denied = story.request(log)
    story.answer(log, AccessDenied, denied)
    again = story.request(log)
    pair = (None, story.PRODUCT, "west.app")
    assert lookup.request(log.image, *pair).request == again
    story.answer(log, AccessDenied, again)
    found = lookup.request(log.image, *pair)
    assert (found.request, found.state) == (again, State.DENIED)


def test_an_unknown_request_names_the_list(log: MemoryLog) -> None:
    for reference in ("#3", "ffffffff"):
        with pytest.raises(NotFoundError, match="sdm access list"):
            lookup.request(log.image, reference, None, None)


@pytest.mark.parametrize(
    ("reference", "offset"),
    [("41", 41), ("#41", 41), ("0", 0), ("#0", 0), ("00", None), ("01", None), ("0f", None)],
)
def test_digits_are_an_offset_unless_they_begin_an_id(reference: str, offset: int | None) -> None:
    assert lookup.offset_of(reference) == offset


def test_nothing_given_and_no_offset_are_usage_errors(log: MemoryLog) -> None:
    with pytest.raises(UsageError, match="which request"):
        lookup.request(log.image, None, None, None)
    with pytest.raises(UsageError, match="which request"):
        lookup.request(log.image, "", None, None)
    with pytest.raises(InvalidValueError, match="41"):
        lookup.request(log.image, "#x", None, None)


def test_a_name_that_is_nearly_right_is_suggested(log: MemoryLog) -> None:
    with pytest.raises(NotFoundError, match=r"did you mean east\.users"):
        lookup.product(log.image, "east.user")
    with pytest.raises(NotFoundError, match="sdm domain list"):
        lookup.domain(log.image, "zzz")
    with pytest.raises(NotFoundError, match="sdm link list"):
        lookup.link(log.image, story.LINK)
    assert lookup.application(log.image, "west.app").id == "west.app"


def test_a_request_is_shown_by_a_number_that_finds_it_again(log: MemoryLog) -> None:
    asked = story.request(log)
    shown = lookup.number(log.image.access.requests[asked])
    assert shown.isdecimal()
    for reference in (shown, f"#{shown}"):
        assert lookup.request(log.image, reference, None, None).request == asked


def test_no_command_shows_an_offset_as_a_shells_comment() -> None:
    """`sdm trace #41` would be `sdm trace`."""
    places = [*(ROOT / "self_service").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]
    shown = re.compile(r"#\{[a-z_.]+\}|sdm [a-z -]+'?#[0-9]|[ (]#OFFSET")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in [*places, ROOT / "README.md"]
        for line in path.read_text("utf-8").splitlines()
        if shown.search(line)
    ]
    assert found == []
