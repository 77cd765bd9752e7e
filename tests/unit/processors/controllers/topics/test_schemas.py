"""Subjects of published products are kept FULL, whoever changes them."""

from dataclasses import replace

import pytest
from immutables import Map

from mesh_events.errors import InfrastructureError
from mesh_events.schema.compatibility import Level
from processors.controllers.topics import schemas
from processors.controllers.topics.schemas import LOOK_S, SchemasController
from tests import sample_history as story
from tests.connectors.memory import MemoryLeadership
from tests.memory_log import MemoryLog


class Rules:
    """A registry in memory; `down` refuses every call."""

    def __init__(self, level: Level = Level.BACKWARD) -> None:
        self.levels: dict[str, Level] = {}
        self.general, self.down, self.asked = level, False, 0

    def level(self, subject: str) -> Level:
        self.asked += 1
        if self.down:
            raise InfrastructureError("the registry does not answer", retriable=True)
        return self.levels.get(subject, self.general)

    def set_level(self, subject: str, level: Level) -> None:
        self.levels[subject] = level


class World:
    def __init__(self, level: Level = Level.BACKWARD) -> None:
        self.log, self.rules, self.time = MemoryLog(), Rules(level), 100.0
        story.published(self.log)
        self.leadership = MemoryLeadership(self.log)
        self.controller = SchemasController(self.rules, clock=lambda: self.time)

    def look(self, seconds: float = 1) -> None:
        self.time += seconds
        self.controller.reconcile(self.log.image, self.leadership)


def test_a_published_product_is_held_to_full() -> None:
    world = World()
    subject = world.log.image.catalog[story.PRODUCT].schema_subject
    world.look()
    assert world.rules.levels == {subject: Level.FULL}


def test_a_stricter_rule_stays() -> None:
    world = World(Level.FULL_TRANSITIVE)
    world.look()
    assert world.rules.levels == {}


def test_a_rule_that_somebody_changed_is_put_back_and_the_registry_is_not_asked_all_the_time() -> (
    None
):
    world = World()
    world.look()
    [subject] = world.rules.levels
    asked = world.rules.asked
    world.rules.levels[subject] = Level.NONE
    world.look()
    assert world.rules.asked == asked
    world.look(LOOK_S)
    assert world.rules.levels == {subject: Level.FULL}


def test_a_registry_that_is_down_is_asked_again() -> None:
    world = World()
    world.rules.down = True
    world.look()
    world.rules.down = False
    world.look()
    assert list(world.rules.levels.values()) == [Level.FULL]


def test_each_subject_has_its_turn_however_many_come_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    monkeypatch.setattr(schemas, "for_a_while", lambda items: items[:1])
    [product] = world.log.image.catalog.values()
    subjects = {f"east.a{number}-value" for number in range(4)}
    catalog = {one: replace(product, schema_subject=one) for one in subjects}
    image = world.log.image._replace(catalog=Map(catalog))
    for _ in subjects:
        world.time += LOOK_S
        world.controller.reconcile(image, world.leadership)
    assert set(world.rules.levels) == subjects
