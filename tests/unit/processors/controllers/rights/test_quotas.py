"""The quotas controller: each login of intents gets its share of the budget."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from benchmarks.report import RESULTS
from local_platform.jvm import JVM_BOUNDS
from mesh_events import facts, intents
from mesh_events.kafka.client_quotas import PRODUCED, REQUESTS
from processors.controllers.rights import quotas
from processors.controllers.rights.quotas import (
    LEAST_BYTES_S,
    LEAST_PERCENT,
    Budget,
    QuotasController,
)
from processors.settings import WorkerSettings
from tests import sample_history as story
from tests.links.memory import MemoryCluster
from tests.memory_log import MemoryLog

BUDGET = Budget(bytes_s=1_048_576, request_percent=100)


@dataclass
class Epoch:
    """A leadership that reports nothing."""

    epoch: int = 0
    last_report: int = -1

    def check(self) -> None:
        return

    def report(self, fact: facts.Fact) -> None:
        raise AssertionError(fact)

    def meta(self, cause: str, step: str, generation: int, *, correlation: str) -> Any:
        raise AssertionError((cause, step, generation, correlation))


class World:
    """A log with some domains, and a controller over a cluster in memory."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.log.start_governor()
        self.log.operator(intents.ClusterRegistered, **story.cluster("east"))
        self.log.govern()
        self.cluster = MemoryCluster("east")
        self.leadership = Epoch()
        self.controller = QuotasController(lambda _, __: self.cluster, BUDGET)

    def domains(self, *names: str) -> None:
        for name in names:
            self.log.operator(intents.DomainRegistered, **story.domain(name, "east"))
        self.log.govern()

    def keep(self) -> None:
        self.controller.reconcile(self.log.image, self.leadership)


@pytest.fixture
def world() -> World:
    return World()


def test_the_shares_of_all_logins_never_exceed_the_budget_above_the_least_share() -> None:
    for logins in range(1, 513):
        assert BUDGET.share(logins)[PRODUCED] * logins <= BUDGET.bytes_s
    for logins in range(1, 33):
        assert BUDGET.share(logins)[REQUESTS] * logins <= BUDGET.request_percent


def test_what_all_domains_append_at_the_brokers_bound_is_less_than_was_measured_to_be_folded() -> (
    None
):
    budget = WorkerSettings.model_fields["log_quota_kib_s"].default * 1024
    times = JVM_BOUNDS["mesh.appends.times"]
    records = times * budget / JVM_BOUNDS["mesh.appends.record.bytes"]
    figures = json.loads((RESULTS / "replay.json").read_text())["figures"]
    assert records < figures["replay, signatures checked"]["events/s"]


def test_one_login_alone_has_no_more_than_an_eighth() -> None:
    assert BUDGET.share(1) == BUDGET.share(8)
    assert BUDGET.share(1)[PRODUCED] == BUDGET.bytes_s / 8


def test_a_login_keeps_its_least_share_however_many_there_are() -> None:
    assert BUDGET.share(10_000) == {PRODUCED: LEAST_BYTES_S, REQUESTS: LEAST_PERCENT}


def test_a_budget_of_zero_removes_the_quotas() -> None:
    assert Budget(0, 0).share(3) == {PRODUCED: 0.0, REQUESTS: 0.0}


def test_every_login_of_intents_gets_its_share(world: World) -> None:
    world.domains("east", "west", "north")
    world.keep()
    share = BUDGET.share(3)
    names = ("east.intents", "west.intents", "north.intents")
    assert world.cluster.quotas == dict.fromkeys(names, share)


def test_a_domain_that_leaves_the_shares_as_they_are_costs_one_quota(world: World) -> None:
    world.domains("east", "west", "north")
    world.keep()
    world.cluster.quotas.clear()
    world.domains("south")
    world.keep()
    assert world.cluster.quotas == {"south.intents": BUDGET.share(4)}


def test_a_domain_that_changes_the_shares_changes_those_of_all(world: World) -> None:
    world.domains(*(f"d{number}" for number in range(8)))
    world.keep()
    before = world.cluster.quotas["d0.intents"]
    world.domains("d8")
    world.keep()
    assert world.cluster.quotas["d0.intents"] == BUDGET.share(9) != before


def test_a_new_epoch_sets_every_quota_again(world: World) -> None:
    world.domains("east")
    world.keep()
    world.cluster.quotas.clear()
    world.keep()
    assert not world.cluster.quotas
    world.leadership.epoch += 1
    world.keep()
    assert world.cluster.quotas == {"east.intents": BUDGET.share(1)}


def test_quotas_that_could_not_be_set_are_set_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "AGAIN_S", 0.0)
    world.domains("east")
    world.cluster.down = True
    world.keep()
    assert not world.cluster.quotas
    world.cluster.down = False
    world.keep()
    assert world.cluster.quotas == {"east.intents": BUDGET.share(1)}
