"""One schedule from its beginning to its end, with everything of the world replaced."""

import hashlib
import itertools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from mesh_events import signing
from mesh_events.record import Entry, Record
from processors.controllers import lanes, rows
from processors.controllers.checks import checks
from processors.controllers.flows import ends, fence, starting
from processors.controllers.flows import stopping as flow_stopping
from processors.controllers.links import stopping as link_stopping
from processors.controllers.rights import credentials, rights, unexpected
from processors.governor import governor, mesh_clock
from processors.worker import leadership
from projections.image import Image
from tests.links import memory
from tests.simulation.acts import obey
from tests.simulation.invariants import Entries, Invariants, understood
from tests.simulation.models import RowReader
from tests.simulation.world import CLOCK, KEYS, POLICIES, Act, World

ROUNDS = 40
_PLACES = (governor, credentials, rights, starting, flow_stopping, link_stopping)
_TIMED = (mesh_clock, leadership, checks, credentials, rights, unexpected, fence, lanes, ends)
"""Modules that ask for the time."""


class Bottle:
    """The replaced parts that need to know which world is simulated now."""

    def __init__(self) -> None:
        self.entries: Entries | None = None
        self.world: World | None = None
        self.names = itertools.count()

    def entry_of(self, record: Record, image: Image, *, verify: bool = True) -> Entry:
        """As the real one; every worker reads the same log, so each record is read once."""
        del verify
        assert self.entries is not None
        return understood(self.entries[record.offset], image)

    def crash_point(self, name: str) -> None:
        """A named place in whichever worker is at work."""
        assert self.world is not None
        self.world.working[-1].interrupts.place(name)

    def token(self, _: int) -> str:
        """A name that no other incarnation has."""
        return f"{next(self.names):08x}"


BOTTLE = Bottle()


def _sign(self: signing.SigningKey, root: str, key: bytes, value: bytes) -> bytes:
    return _digest(self.public, root, key, value)


def _verifies(public: bytes, signature: bytes, root: str, key: bytes, value: bytes) -> bool:
    return signature == _digest(signing.encode_public(public), root, key, value)


def _digest(public: str, root: str, key: bytes, value: bytes) -> bytes:
    return hashlib.blake2b(public.encode() + signing.signed_bytes(root, key, value)).digest()


@contextmanager
def replaced() -> Iterator[None]:
    """Time, signatures (a hash in their place, a hundred times cheaper), names and rows."""
    with pytest.MonkeyPatch.context() as patch:
        for module in _TIMED:
            patch.setattr(module, "time", CLOCK)
        for module in _PLACES:
            patch.setattr(module, "crash_point", BOTTLE.crash_point)
        patch.setattr(signing.SigningKey, "sign", _sign)
        patch.setattr(signing, "verifies", _verifies)
        patch.setattr(governor, "entry_of", BOTTLE.entry_of)
        patch.setattr(fence, "secrets", SimpleNamespace(token_hex=BOTTLE.token))
        patch.setattr(rows, "PartitionReader", RowReader)
        patch.setattr(rows, "decode_row", lambda value, _: value)
        told = structlog.get_config()
        # what workers say would take longer than what they do
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
        try:
            yield
        finally:
            structlog.configure(**told)


def simulate(acts: list[Act]) -> World:
    """Run a schedule inside `replaced()`; raises AssertionError for what must not be."""
    memory._ids = itertools.count()
    BOTTLE.names = itertools.count()
    checked: list[Invariants] = []
    world = World.new(lambda _: checked[0].check(), obey)
    BOTTLE.world, BOTTLE.entries = world, Entries(world)
    checked.append(Invariants(world, BOTTLE.entries))
    world.assign("a")
    world.run(acts)
    settle(world, checked[0])
    checked[0].finish()
    return world


def settle(world: World, invariants: Invariants) -> None:
    """All servers answer, what was late is done, and each worker has all the time it needs."""
    servers: list[Any] = [*world.clusters.values(), world.engine]
    for server in servers:
        server.down = False
    world.clock.set(0, 0)
    world.registry.down = False
    while world.late:
        world.land(0)
    for worker in world.workers.values():
        worker.interrupts.next = None
    invariants.check()
    if world.keys != KEYS or world.policies != POLICIES:
        # what must be right in the end needs a worker whose words count, and that may repair
        world.policies = dict(POLICIES)
        for each in world.workers.values():
            each.interrupts.dead = True
            world.buried(each)
    # what the log orders is done under any policy, what drifted only by one who repairs
    for name in ("b", "a"):
        _get_over(world, invariants, name)
        invariants.check_orders()


def _get_over(world: World, invariants: Invariants, name: str) -> None:
    """Let one worker leadership until nothing is left to do for it."""
    world.assign(name)
    worker = world.worker(name)
    for turn in range(ROUNDS):
        world.log.now += 61_000
        before = len(world.log.records)
        for controller in ("checks", "rights", "links", "credentials", "rows"):
            worker.listen()
            while worker.step():
                pass
            worker.keep(controller)
            world.engine.move()
            invariants.check()
        if len(world.log.records) == before and turn > 3:
            return
