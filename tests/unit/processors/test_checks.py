"""Checks are made for every domain alike."""

from mesh_events import intents
from processors.keepers.checks import Task, by_turns, missing
from tests import paper_story as story
from tests.paper_log import Never, PaperLog


def publications(log: PaperLog, domain: str, count: int) -> None:
    for number in range(count):
        name = f"{domain}.p{number}"
        log.say(
            intents.ProductPublished,
            domain,
            **{**story.product(), "product": name, "topic": name},
        )


def test_missing_checks_are_named_oldest_intent_first() -> None:
    log = PaperLog(checks={"topic_exists": Never(), "schema_registered": Never()})
    story.domains(log)
    publications(log, "east", 2)
    publications(log, "west", 1)
    found = list(missing(log.image))
    assert [task.offset for task in found] == sorted(task.offset for task in found)
    assert {task.check for task in found} == {"topic_exists", "schema_registered"}
    assert len(found) == 6


def test_domains_take_turns_however_much_one_of_them_says() -> None:
    log = PaperLog(checks={"topic_exists": Never()})
    story.domains(log)
    publications(log, "east", 50)
    publications(log, "west", 2)
    tasks = [task for task in missing(log.image) if task.check == "topic_exists"]
    turns = [task.intent.meta.domain for task in by_turns(tasks)]
    assert turns[:4] == ["east", "west", "east", "west"]
    assert len(turns) == 52
    east = [task.offset for task in by_turns(tasks) if task.intent.meta.domain == "east"]
    assert east == sorted(east)


def test_no_tasks_make_no_turns() -> None:
    nothing: list[Task] = []
    assert by_turns(nothing) == []
