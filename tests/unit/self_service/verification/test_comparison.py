import pytest

from self_service.cli.verification.comparison import differences, folded
from tests import sample_history as story
from tests.memory_log import MemoryLog


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.published(found)
    story.granted(found)
    return found


def test_rows_that_the_log_gives_do_not_differ(log: MemoryLog) -> None:
    assert differences(folded(log.image), folded(log.image)) == []


def test_missing_foreign_and_old_rows_are_told_apart(log: MemoryLog) -> None:
    before = folded(log.image)
    story.settle(log)
    after = folded(log.image)
    product = ("mesh.catalog", story.PRODUCT)
    published = {**before, ("mesh.catalog", "east.ghost"): before[product]}
    del published[product]
    found = {(one.topic, one.key): one.kind for one in differences(published, after)}
    assert found[product] == "missing on the topic"
    assert found["mesh.catalog", "east.ghost"] == "not in the log"
    link = ("mesh.links", story.LINK)
    assert found[link] == (
        f"as of offset {before[link].as_of_offset}, the log has {after[link].as_of_offset}"
    )
