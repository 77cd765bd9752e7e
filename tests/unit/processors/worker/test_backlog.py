"""For which intents a worker's readiness waits."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from mesh_events.intents import AccessGranted, DomainThawed
from processors.worker.backlog import Backlog
from processors.worker.metrics import Metrics
from processors.worker.worker import Worker
from tests import sample_history as story
from tests.memory_log import MemoryLog


def said(log: MemoryLog, domain: str, count: int) -> list[int]:
    return [
        log.say(AccessGranted, domain, product="east.users", request=f"{domain}-{number}")
        for number in range(count)
    ]


def is_open(backlog: Backlog, log: MemoryLog, *waiting: int) -> bool:
    return backlog.is_open(log.image, lambda: waiting)


def begun() -> MemoryLog:
    log = MemoryLog()
    story.domains(log)
    return log


def test_the_first_intent_of_each_domain_is_waited_for_and_no_other() -> None:
    log = begun()
    east, west = said(log, "east", 9), said(log, "west", 2)
    backlog = Backlog(log.image, log.start_governor())

    seen = [is_open(backlog, log)]
    for offset in (east[0], west[0]):
        log.rule(offset, log.verdict(offset))
        seen.append(is_open(backlog, log))

    assert seen == [True, True, False]
    assert east[1] in log.image.intents.undecided


def test_all_that_an_operator_said_is_waited_for() -> None:
    log = begun()
    freezes = [log.operator(DomainThawed, domain="east", reason="why") for _ in range(2)]
    backlog = Backlog(log.image, log.start_governor())

    seen = [is_open(backlog, log, *freezes)]
    for offset in freezes:
        log.rule(offset, log.verdict(offset))
        seen.append(is_open(backlog, log, *freezes))

    assert seen == [True, True, False]


def test_a_domains_intent_that_waits_for_a_check_is_not_waited_for() -> None:
    log = begun()
    [first] = said(log, "east", 1)
    backlog = Backlog(log.image, log.start_governor())

    assert is_open(backlog, log)
    assert not is_open(backlog, log, first)


def test_what_is_said_after_the_start_is_not_waited_for() -> None:
    log = begun()
    epoch = log.start_governor()
    said(log, "east", 1)

    assert not is_open(Backlog(log.image, epoch), log)


def test_a_worker_is_ready_while_one_domains_old_intents_wait() -> None:
    log, nothing = begun(), cast("Any", None)
    east = said(log, "east", 9)
    governor = SimpleNamespace(is_leader=True, metrics=Metrics(), waiting=dict, image=log.image)

    async def states() -> list[bool]:
        worker = Worker(cast("Any", governor), nothing, nothing, nothing, [])
        epoch = log.start_governor()
        worker._leadership = cast("Any", SimpleNamespace(staleness=0.0, alone_in=0.0, epoch=epoch))
        worker._backlog = Backlog(log.image, epoch)
        seen = []
        for offset in (None, east[0]):
            if offset is not None:
                log.rule(offset, log.verdict(offset))
            governor.image = log.image
            seen.append(worker.ready)
        return seen

    assert asyncio.run(states()) == [False, True]
