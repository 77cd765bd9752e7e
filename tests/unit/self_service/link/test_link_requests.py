"""Whose requests `sdm link describe` lists."""

from mesh_events import intents
from self_service.cli.link.commands import _asked
from tests import sample_history as story
from tests.memory_log import MemoryLog


def test_a_link_lists_also_the_requests_that_nobody_granted() -> None:
    log = MemoryLog()
    story.published(log)
    denied = story.request(log)
    story.answer(log, intents.AccessDenied, denied)
    granted = story.granted(log)
    story.settle(log)
    listed = [(one.request, one.state) for one in _asked(log.image, story.LINK)]
    assert listed == [(denied, "DENIED"), (granted, "ACTIVE")]
    assert [one.request for one in log.image.access.of_link(story.LINK)] == [granted]
