import pytest

from mesh_events import intents
from mesh_events.errors import ConfigurationError, RefusedError
from projections.image import Image
from self_service.cli.topic.denial import advice, advising
from tests import sample_history as story
from tests.memory_log import MemoryLog

ASK = "sdm access request east.users west.app --reason WHY -d west"


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.published(found)
    return found


def test_an_application_that_never_asked_is_told_how_to_ask(log: MemoryLog) -> None:
    assert ASK in advice(log.image, "east.users", "west.app")


def test_an_application_that_asked_is_told_where_to_see_why(log: MemoryLog) -> None:
    asked = story.request(log)
    assert "sdm access explain east.users west.app" in advice(log.image, "east.users", "west.app")
    story.answer(log, intents.AccessDenied, asked)
    assert ASK in advice(log.image, "east.users", "west.app")


def test_a_domain_is_told_that_applications_read(log: MemoryLog) -> None:
    told = advice(log.image, "east.users", "west")
    assert ASK in told
    assert "--application west.app" in told
    # north has one application, east has none: its name is left to fill in
    assert "north.app" in advice(log.image, "east.users", "north")
    log.say(intents.ApplicationRegistered, "north", application="north.second")
    log.govern()
    assert "north.APPLICATION" in advice(log.image, "east.users", "north")


def test_a_domain_whose_application_has_the_grant_is_told_which(log: MemoryLog) -> None:
    story.granted(log)
    told = advice(log.image, "east.users", "west")
    assert told == "applications read products, not domains: add --application west.app"


def test_a_writer_is_told_who_writes(log: MemoryLog) -> None:
    told = advice(log.image, "east.users", "west.app", writing=True)
    assert "only east may write east.users" in told
    assert "sdm product describe east.users" in told


def test_a_topic_without_a_product_and_an_own_one_have_other_next_steps(log: MemoryLog) -> None:
    assert "sdm catalog search" in advice(log.image, "east.other", "west.app")
    own = advice(log.image, "west.own", "west.app", writing=True)
    assert "on cluster west, and are written with its login, `-d west`" in own


class _Mesh:
    """A mesh that answers with an image, or with an error."""

    def __init__(self, found: Image | None) -> None:
        self.found = found

    def image(self) -> Image:
        if self.found is None:
            raise ConfigurationError("no mesh here")
        return self.found


def test_only_kafkas_refusal_gets_advice_and_without_a_mesh_it_stays_as_it_was(
    log: MemoryLog,
) -> None:
    for mesh, code, advised in (
        (_Mesh(log.image), "kafka_denied", True),
        (_Mesh(log.image), "own_request", False),
        (_Mesh(None), "kafka_denied", False),
    ):
        with (
            pytest.raises(RefusedError) as told,
            advising(mesh, "east.users", "west.app"),  # type: ignore[arg-type]
        ):
            raise RefusedError(code, "Kafka refused")
        assert told.value.code == code
        assert (ASK in str(told.value)) is advised
