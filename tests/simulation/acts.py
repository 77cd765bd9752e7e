"""What happens: people and strangers speak, workers get on or are held up, servers and time move.

An act is (name, a, b): the two small numbers say which of the possible things of that name.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from mesh_events import intents
from mesh_events.decisions import GovernorStarted, IntentAccepted, MeshRole
from mesh_events.facts import AclApplied, CheckPassed
from mesh_events.meta import MESH_DOMAIN, derived_id
from processors.clusters.drift import Policy
from processors.clusters.rights import reader
from tests.links.memory import MemoryTopic
from tests.memory_log import at, key, meta
from tests.simulation.interrupts import Fault, Interrupt
from tests.simulation.world import APPLICATIONS, NAMES, PRODUCTS, Act, World

Thing = TypeVar("Thing")
TABLE: dict[str, Callable[[World, int, int], object]] = {}
WEIGHTS: dict[str, int] = {}
_NAMED = (
    "append Intent",
    "append",
    "grant",
    "withdraw",
    "append Governor",
    "start query",
    "stop query",
    "row",
    "link-after",
    "append Link",
    "append Acl",
    "delete topic",
)
PLACES = ("", "", "", *_NAMED, "", "", "log end", *_NAMED)
"""Beginnings of the names of places where a worker is held up; the empty one is any place."""


def act(weight: int) -> Callable[[Callable[[World, int, int], object]], None]:
    """Put a function into the table; the greater the weight, the more often it is drawn."""

    def put(do: Callable[[World, int, int], object]) -> None:
        TABLE[do.__name__] = do
        WEIGHTS[do.__name__] = weight

    return put


def obey(world: World, given: Act) -> None:
    """Let one act happen."""
    name, a, b = given
    TABLE[name](world, a, b)


def drawn() -> list[str]:
    """Every name as often as its weight says."""
    return [name for name in sorted(WEIGHTS) for _ in range(WEIGHTS[name])]


def pick(things: Sequence[Thing], number: int) -> Thing:
    """One of the things, whatever the number."""
    return things[number % len(things)]


def asked(world: World) -> list[intents.AccessRequested]:
    """The requests that were ever made, the latest first."""
    return world.said[::-1]


@act(7)
def request(world: World, a: int, b: int) -> None:
    """An application's domain asks for a product."""
    application = pick(APPLICATIONS, a)
    sender = application.partition(".")[0]
    event = world.log.make(
        intents.AccessRequested,
        sender,
        product=pick(("east.users", "east.users", "east.orders"), b),
        application=application,
        reason="to read it",
    )
    world.said.append(event)
    world.speak(event)


def _answer(world: World, kind: type[intents.Intent], a: int, b: int, **fields: object) -> None:
    """The owner answers, or somebody else tries to."""
    known = asked(world)
    if known:
        found = pick(known, a)
        sender = "east" if b < 6 else found.application.partition(".")[0]
        world.say(kind, sender, product=found.product, request=found.meta.id, reason="so", **fields)


@act(9)
def grant(world: World, a: int, b: int) -> None:
    policy = intents.OnRevoke.RETAIN if b == 5 else intents.OnRevoke.PURGE
    _answer(world, intents.AccessGranted, a // 3, b, on_revoke=policy)


@act(1)
def deny(world: World, a: int, b: int) -> None:
    _answer(world, intents.AccessDenied, a, b)


@act(6)
def revoke(world: World, a: int, b: int) -> None:
    _answer(world, intents.AccessRevoked, a // 2, b)


@act(1)
def update(world: World, a: int, b: int) -> None:
    sender = "east" if b else "west"
    world.say(intents.ProductUpdated, sender, product=pick(sorted(PRODUCTS), a), sla=1 + b % 3)


@act(1)
def rotate(world: World, a: int, _: int) -> None:
    application = pick(APPLICATIONS, a)
    sender, home = application.partition(".")[0], {"west": "west"}
    world.say(
        intents.CredentialsRequested,
        sender,
        principal=application,
        cluster=home.get(sender, "east"),
    )


@act(2)
def quarantine(world: World, a: int, b: int) -> None:
    """The operator cuts a consumer off, or lets it back."""
    kind = intents.DomainReleased if a % 3 else intents.DomainQuarantined
    world.log.operator(kind, domain=pick(("west", "north", "east"), b), reason="to be looked at")


@act(2)
def freeze(world: World, a: int, b: int) -> None:
    """The operator silences a domain or all of them for a time, or ends that."""
    domain = pick(("west", "east", "north", MESH_DOMAIN), b)
    if a % 3:
        world.log.operator(intents.DomainThawed, domain=domain, reason="over")
    else:
        until = at(world.log.now + (30_000, 200_000)[a // 3 % 2])
        world.log.operator(intents.DomainFrozen, domain=domain, until=until, reason="a moment")


@act(1)
def change_key(world: World, a: int, b: int) -> None:
    """A domain gets another key, and speaks with it at once."""
    domain = pick(("west", "east", "north"), a)
    name = f"{domain} {len(world.log.records)}"
    proof = world.log.proof(name, domain)
    fields = {"domain": domain, "public_key": key(name).public, "proof": proof}
    if b % 2:
        world.say(intents.KeyRegistered, domain, **fields)
    else:
        world.log.operator(intents.KeyRegistered, **fields)
    world.signers[domain] = name


@act(1)
def revoke_key(world: World, a: int, b: int) -> None:
    """A domain's first key must speak no more, or the one that it speaks with."""
    domain = pick(("west", "east", "north"), a)
    name = world.signers.get(domain, domain) if b == 0 else domain
    public = key(name).public
    world.log.operator(intents.KeyRevoked, domain=domain, public_key=public, reason="seen")


@act(1)
def change_mesh_key(world: World, a: int, _: int) -> None:
    """The root gives governor or controller another key; processes begin with it from now on."""
    role = pick((MeshRole.GOVERNOR, MeshRole.CONTROLLER), a)
    old, name = world.keys[role], f"{role} {len(world.log.records)}"
    world.log.introduce_key(role, name)
    world.keys[role] = name
    if a // 2 % 2:
        world.log.revoke_key(old)


@act(6)
def direct(world: World, a: int, b: int) -> None:
    """Somebody tells a link what to do."""
    kind = pick(
        (intents.LinkPaused, intents.LinkResumed, intents.LinkDeleted, intents.LinkCreated), a
    )
    product = pick(("east.users", "east.users", "east.orders"), b // 3)
    if a // 4 and b % 3 == 0:
        world.log.operator(kind, product=product, cluster="west")
    else:
        world.say(kind, pick(("east", "west", "north"), b % 3), product=product, cluster="west")


@act(1)
def publish_badly(world: World, a: int, b: int) -> None:
    """A product without a topic, without a schema, or of somebody else."""
    sender, name = pick((("east", "east.none"), ("west", "east.more"), ("west", "west.none")), a)
    topic = pick(("east.none", "east.users"), b)
    world.say(
        intents.ProductPublished,
        sender,
        product=name,
        topic=topic,
        description="d",
        owner="team",
        quality=intents.Quality.RAW,
        sla=1,
        tags=[],
        acknowledged=True,
    )


@act(4)
def write_again(world: World, a: int, b: int) -> None:
    """Anybody who may write can append a copy of any signed record."""
    records = world.log.records[world.known.offset + 1 :]
    if a < 4:
        records = [one for one in records if (one.headers.get("ce_type") or b"").endswith(b".fact")]
    if records:
        world.log.put(pick(records[::-1], a * 8 + b))


@act(1)
def garbage(world: World, a: int, b: int) -> None:
    """Bytes that are nothing, or a record whose signature is another's."""
    records = world.log.records
    victim = records[-1 - (a * 8 + b) % 20]
    if a < 4:
        world.log.put(replace(victim, value=b"\x00garbage"))
    else:
        headers = {**victim.headers, "mesh_signature": records[-2].headers["mesh_signature"]}
        world.log.put(replace(victim, headers=headers))


@act(2)
def flood(world: World, a: int, b: int) -> None:
    """Garbage, with somebody's intents between."""
    for number in range(1 + a % 4):
        world.log.put(replace(world.log.records[-1], value=b"\x00garbage"))
        if number % 2 == 0:
            TABLE["request"](world, a + number, b)
    world.log.put(replace(world.log.records[-1], value=b"\x00garbage"))


@act(2)
def flood_with_copies(world: World, a: int, b: int) -> None:
    """Copies of what operators and domains have signed, with somebody's intents between."""
    records = world.log.records
    signed = [one for one in records if (one.headers.get("ce_type") or b"").endswith(b".intent")]
    for number in range(2 + a % 4):
        world.log.put(signed[-1 - (a * 8 + b + number) % len(signed)])
        world.log.put(signed[-1 - b % len(signed)])
        if number % 2 == 0:
            TABLE["request"](world, a + number, b)


@act(2)
def forge(world: World, a: int, b: int) -> None:
    """A domain speaks as governor or controller."""
    log, epoch = world.log, max((w.governor.image.epoch for w in world.workers.values()), default=0)
    about = meta(MESH_DOMAIN, derived_id("forged", str(len(log.records)), 0), log.now)
    where = max(0, len(log.records) - 1 - b)
    match a % 4:
        case 0:
            chain = {"basis": where, "clock": at(log.now), "follows": log.image.last_decision}
            forged = IntentAccepted(meta=about, offset=where, epoch=epoch, intent="x", **chain)
            log.append(forged, by="west")
        case 1 if world.said:
            found = pick(asked(world), b)
            fact = AclApplied(
                meta=about,
                subject=found.meta.id,
                cluster="west",
                generation=where,
                bindings=[],
            )
            log.append(fact, by="west")
        case 2:
            log.append(CheckPassed(meta=about, offset=where, check="target_free"), by="west")
        case 3:
            log.append(GovernorStarted(meta=about, version="9"), by="west")


@act(4)
def assign(world: World, a: int, _: int) -> None:
    """Kafka gives the log to a worker; a dead one is started first."""
    world.assign(pick(NAMES, a))


@act(4)
def deliver(world: World, a: int, b: int) -> None:
    """A few records reach a worker, some of them twice."""
    world.worker(pick(NAMES, a)).deliver(1 + a // 2, b // 4)


@act(10)
def decide(world: World, a: int, b: int) -> None:
    """A worker decides some records."""
    worker = world.worker(pick(NAMES, a))
    if b % 4:
        worker.listen()
    for _ in range(1 + b):
        if not worker.step():
            break


@act(14)
def keep(world: World, a: int, b: int) -> None:
    """A controller of a worker has a round."""
    worker = world.worker(pick(NAMES, a))
    if a < 6:
        worker.listen()
    worker.keep(pick(sorted(worker.controllers), b))


@act(12)
def get_on(world: World, a: int, b: int) -> None:
    """A worker decides all it can, and each of its controllers has a round.

    Mostly when those before it cannot act any more; it waits for that, as everybody does.
    """
    worker = world.worker(pick(NAMES, a))
    if worker.leadership is not None and a % 8 < 6:
        world.log.now += math.ceil(worker.leadership.alone_in * 1000)
    for name in ("checks", "rights", "links", "rights", "credentials", "rows")[: 2 + b]:
        worker.listen()
        while worker.step():
            pass
        worker.keep(name)


def _hold_up(fault: Fault) -> Callable[[World, int, int], None]:
    """A worker meets this fault at one of its next places."""

    def do(world: World, a: int, b: int) -> None:
        worker = world.worker(pick(NAMES, a))
        place = pick(PLACES, a // 2 * 8 + b)
        worker.interrupts.next = Interrupt(fault, 1 + (a // 2 + b) % 3, 3 + a, place)

    return do


for _fault in Fault:
    TABLE[_fault.name.lower()] = _hold_up(_fault)
    WEIGHTS[_fault.name.lower()] = 2


@act(2)
def kill(world: World, a: int, _: int) -> None:
    """A worker is killed while it waits."""
    worker = world.worker(pick(NAMES, a))
    worker.interrupts.dead = True
    world.buried(worker)


@act(4)
def land(world: World, a: int, _: int) -> None:
    """Something that was under way is done after all."""
    world.land(a)


@act(6)
def produce(world: World, a: int, b: int) -> None:
    topic: MemoryTopic = world.clusters["east"].topics[
        pick(("east.orders", "east.users", "east.users"), a)
    ]
    for number in range(1 + b % 3):
        topic.partitions[(a + number) % len(topic.partitions)].append(f"{a}.{number}".encode())


@act(2)
def add_partitions(world: World, a: int, b: int) -> None:
    """An owner adds partitions to a topic."""
    topic = world.clusters["east"].topics[pick(("east.users", "east.orders"), a)]
    topic.grow(min(len(topic.partitions) + 1 + b % 2, 6))


@act(1)
def discover(world: World, _: int, __: int) -> None:
    """Batches end: queries find the partitions that were added to their sources."""
    world.engine.discover()


@act(6)
def take(world: World, _: int, __: int) -> None:
    """Every query reads what there is."""
    world.engine.take()


@act(5)
def write(world: World, _: int, b: int) -> None:
    """Producers, also of queries that ended, write some of what they hold, or all of it."""
    world.engine.land(b or None)


@act(4)
def engine_dies(world: World, _: int, __: int) -> None:
    world.engine.die()


@act(2)
def switch(world: World, a: int, _: int) -> None:
    """A server goes away, or comes back."""
    servers: list[Any] = [world.clusters["west"], world.clusters["east"], world.engine]
    for one, server in enumerate(servers):
        if one == a % 4:
            server.down = not server.down
    if a % 4 == 3:
        world.registry.down = not world.registry.down


@act(2)
def drift(world: World, a: int, b: int) -> None:
    """An administrator takes the rights to a topic away, or gives an application one."""
    name, topic = "west" if a % 2 else "east", pick(sorted(PRODUCTS), b)
    cluster = world.clusters[name]
    if a % 4 < 2:
        for application in APPLICATIONS:
            cluster.bindings -= reader(application, topic)
    else:
        rights = reader(pick(APPLICATIONS, a // 4), topic)
        strange = {(name, right) for right in rights - cluster.bindings}
        world.strange |= strange
        world.given -= strange
        cluster.bindings |= rights


@act(2)
def take_snapshot(world: World, a: int, _: int) -> None:
    """A snapshot is made where a worker stands; processes begin there from now on."""
    image = world.worker(pick(NAMES, a)).governor.image
    if world.snapshot is None or image.offset > world.snapshot.offset:
        world.snapshot = image


@act(1)
def change_policy(world: World, a: int, b: int) -> None:
    """The operator sets what a worker does about drift from its next start on."""
    world.policies[pick(NAMES, b)] = Policy.REPORT if a % 2 else Policy.REPAIR


@act(4)
def wait(world: World, a: int, _: int) -> None:
    """Time passes: a moment, the time of a lease, or that of a check."""
    world.log.now += (1_000, 3_500, 11_000, 70_000)[a % 4]


MINUTE, HOUR = 60_000, 3_600_000
CLOCKS = (
    (0, 0),
    (45_000, 0),
    (10 * MINUTE, 0),
    (26 * HOUR, 0),
    (-HOUR, 0),
    (0, -HOUR),
    (26 * HOUR, 26 * HOUR),
    (0, 26 * HOUR),
)
"""How far the clocks of (the broker that leads the log, the workers) are ahead, ms."""


@act(3)
def set_clocks(world: World, a: int, _: int) -> None:
    """A broker with another clock leads the log, or a clock is set."""
    world.clock.set(*pick(CLOCKS, a))


READERS: tuple[Act, ...] = (
    ("request", 0, 0),
    ("request", 2, 0),
    ("get_on", 0, 7),
    ("grant", 0, 0),
    ("grant", 3, 0),
    ("produce", 1, 2),
    ("get_on", 0, 7),
    ("get_on", 0, 7),
    ("take", 0, 0),
    ("write", 0, 0),
    ("keep", 0, 2),
    ("get_on", 0, 7),
)

CREATED_AGAIN: tuple[Act, ...] = (
    *READERS,
    ("direct", 2, 0),
    *[("get_on", 0, 7)] * 3,
    ("direct", 3, 0),
    ("get_on", 0, 7),
)
"""A link that ran, was removed, and is created again."""

SCENES: tuple[tuple[Act, ...], ...] = (
    (),
    (("request", 0, 0), ("get_on", 0, 7), ("grant", 0, 0), ("get_on", 0, 7)),
    READERS,
    (*CREATED_AGAIN, *[("get_on", 0, 7)] * 2),
    # each copy is the latest fact of the next choice: so this copies one fact after the other
    (*CREATED_AGAIN, *[("write_again", number // 4, 2 * number % 8) for number in range(16)]),
    (
        ("request", 2, 0),
        ("get_on", 0, 7),
        ("grant", 0, 0),
        ("crash_after", 4, 4),
        ("get_on", 0, 7),
        ("quarantine", 0, 1),
    ),
    (
        ("request", 2, 0),
        ("get_on", 0, 7),
        ("grant", 0, 0),
        ("late", 2, 5),
        ("get_on", 0, 0),
        ("quarantine", 0, 1),
        ("get_on", 0, 2),
    ),
    (
        ("request", 2, 0),
        ("get_on", 0, 7),
        ("grant", 0, 0),
        ("decide", 0, 1),
        ("pause", 4, 1),
        ("keep", 0, 3),
        ("wait", 2, 0),
    ),
    (
        ("request", 0, 0),
        ("get_on", 0, 7),
        ("set_clocks", 6, 0),
        ("request", 2, 0),
        ("get_on", 0, 7),
        ("set_clocks", 0, 0),
    ),
    (
        ("request", 2, 0),
        ("revoke_key", 2, 0),
        ("deliver", 2, 0),
        ("take_snapshot", 0, 0),
        ("kill", 0, 0),
        ("assign", 0, 0),
        ("decide", 0, 1),
    ),
    (
        ("flood", 1, 0),
        ("pause", 8, 2),
        ("get_on", 0, 7),
        ("flood", 3, 0),
        ("get_on", 0, 7),
    ),
    (
        ("request", 0, 0),
        ("get_on", 0, 7),
        ("grant", 0, 0),
        *[("get_on", 0, 0)] * 2,
        ("replaced", 2, 3),
        *[("keep", number, 2) for number in (0, 7)],
    ),
    (
        *[("request", number, 0) for number in range(3)],
        ("replaced", 4, 2),
        ("decide", 0, 1),
        ("crash_after", 1, 3),
        ("decide", 1, 1),
    ),
    (
        ("request", 0, 0),
        ("get_on", 0, 7),
        ("grant", 0, 0),
        ("decide", 0, 1),
        ("wait", 3, 0),
        ("yield", 0, 3),
        ("decide", 0, 1),
        ("keep", 0, 0),
    ),
    (("request", 0, 0), ("yield", 0, 3), ("decide", 0, 1), ("change_mesh_key", 2, 0)),
    (("revoke_key", 0, 0), ("request", 0, 0), ("decide", 0, 1)),
    (
        ("request", 0, 0),
        ("freeze", 0, 1),
        ("flood_with_copies", 3, 0),
        ("get_on", 0, 7),
        ("flood_with_copies", 0, 1),
    ),
)
"""How a schedule may begin.

Nothing said, a grant, readers and a copy, a copy made again, a reader cut off before what was given
to it was reported, a report that comes after that, and a worker that stands still behind the
answer to where the log ends, with a right to give in its hands, clocks that were ahead together and
are right again, a forged record that waits when a snapshot is made, and a worker that is replaced
while it starts a link, by one who starts it.
Two governors whose decisions take turns on the log, a check that comes out while the intent is
refused for want of it, a governor whose key is revoked while it appends a decision, a domain's
key that is revoked in the step that judges what the key has signed, and copies of a domain's and of
the operator's intents.
"""
