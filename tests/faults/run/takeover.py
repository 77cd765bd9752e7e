"""Governors that die at named places, stand by, or sleep through their replacement.

The mesh's own governor is stopped while workers of the run take its part, and wakes up again: its
process must live on, since a supervisor that quietly started a new one would hide that it died.
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from confluent_kafka.admin import AdminClient

from local_platform.supervision.state import ServiceStatus
from mesh_events.intents import LinkPaused, LinkResumed
from snapshots.place import open_store
from tests.faults.run.fault import Fault
from tests.faults.run.judge import all_is_right
from tests.faults.run.stage import WAIT_S, Stage, eventually
from tests.faults.worker import WorkerProcess

GROUP = "mesh.governor"
TAKEOVER_S = 60
POINTS: dict[str, Callable[[Stage], int]] = {
    "after-start": lambda _: 1,
    # behind what is folded first comes the start, then what the load says
    "after-fold": lambda stage: unfolded(stage) + 10,
    "before-append": lambda _: 3,
    # the first acknowledgement is that of the start
    "before-ack": lambda _: 4,
    "after-append": lambda _: 3,
    "after-row": lambda _: 2,
    "after-effect": lambda _: 1,
}
"""Crash point of the governor -> the how manieth time it is passed under this load."""
STARTING = ("link-after-fence", "link-after-tail", "link-after-grant", "link-after-start")


def unfolded(stage: Stage) -> int:
    """Records behind the newest snapshot, which a worker folds when it starts."""
    profile = stage.kit.profile
    with open_store(stage.home, profile.mesh, profile.root_key) as store:
        return stage.transcript.read().records[-1]["offset"] - store.newest().offset


@contextmanager
def sleeping(stage: Stage) -> Iterator[ServiceStatus]:
    """The mesh's own governor is stopped inside the block, and governs again after it."""
    before = stage.kill("governor", signal.SIGSTOP)
    try:
        yield before
    finally:
        stage.kill("governor", signal.SIGCONT)


def awake(stage: Stage, before: ServiceStatus) -> None:
    """Wait until the mesh's own governor governs again, and see that it is the same process."""
    stage.governs(WAIT_S)
    now = next(each for each in stage.platform.status() if each.name == before.name)
    assert now.pid == before.pid, f"the governor that slept died: see {now.log}"


def crash(point: str, stage: Stage) -> float:
    """A worker takes over, dies at the point, and the one that slept goes on."""
    removed = stage.revoke_one() if point in ("after-effect", "before-append") else None
    with sleeping(stage) as before:
        die(stage.worker(f"{point}:{POINTS[point](stage)}"))
        began = time.monotonic()
    recovery = stage.pulse(began)
    awake(stage, before)
    if removed is not None:
        removed()
    return recovery


def die(worker: WorkerProcess) -> None:
    """Wait until a worker has killed itself at its crash point."""
    code = worker.wait_end(TAKEOVER_S)
    assert code == -signal.SIGKILL, f"the worker ended with {code}: {worker.log}"


def crash_at_start_of_link(point: str, stage: Stage) -> float:
    """The link starts again, and its controller dies on the way."""
    link = {"product": stage.copied.product, "cluster": "west"}
    stage.kit.accepted(stage.owner.say(LinkPaused, **link))
    stage.link_is("PAUSED", stage.copied.link)
    with sleeping(stage) as before:
        dying = stage.worker(point)
        stage.owner.say(LinkResumed, **link)
        die(dying)
        began = time.monotonic()
    recovery = stage.first_copied(began)
    awake(stage, before)
    return recovery


def crash_at_stop_of_link(stage: Stage) -> float:
    """The link is paused, and its controller dies when the query is stopped."""
    link = {"product": stage.copied.product, "cluster": "west"}
    with sleeping(stage) as before:
        dying = stage.worker("link-after-stop")
        stage.owner.say(LinkPaused, **link)
        die(dying)
    stage.link_is("PAUSED", stage.copied.link)
    began = time.monotonic()
    stage.kit.accepted(stage.owner.say(LinkResumed, **link))
    recovery = stage.first_copied(began)
    awake(stage, before)
    return recovery


def crash_at_purge(stage: Stage) -> float:
    """The last grant ends, and the controller dies when the copy is deleted."""
    gone = stage.link("gone")
    with sleeping(stage) as before:
        dying = stage.worker("link-after-purge")
        gone.owner.emitter.emit(stage.revocation(gone))
        die(dying)
        began = time.monotonic()
    stage.link_is("DELETED", gone.link)
    recovery = time.monotonic() - began
    awake(stage, before)
    return recovery


def standby(stage: Stage) -> float:
    """Its successor waits in the group already."""
    second = stage.worker()
    eventually(lambda: members(stage) == 2, "two workers are in the group", TAKEOVER_S)
    removed = stage.revoke_one()
    began = time.monotonic()
    before = stage.kill("governor")
    recovery = stage.pulse(began, TAKEOVER_S)
    removed()
    second.stop()
    stage.back(before)
    return recovery


def sleeper(stage: Stage, *, naps: bool = False) -> float:
    """Stopped past its session; the second one acts; the first one wakes up and is overruled.

    One that naps wakes up as soon as the second one decides, when it might still act.
    """
    with sleeping(stage) as before:
        began = time.monotonic()
        removed = stage.revoke_one()
        second = stage.worker()
        recovery = stage.pulse(began, TAKEOVER_S)
        if not naps:
            removed()
    if naps:
        removed()
    # both live now: whichever governs, the other waits
    stage.pulse(time.monotonic(), TAKEOVER_S)
    second.stop()
    stage.pulse(time.monotonic(), TAKEOVER_S)
    awake(stage, before)
    return recovery


def members(stage: Stage) -> int:
    """How many workers are in the group, 0 while it is being arranged."""
    admin = AdminClient(stage.kit.admin_login().config())
    found = admin.describe_consumer_groups([GROUP], request_timeout=10)[GROUP].result(15)
    return len(found.members) if found.state.name == "STABLE" else 0


FAULTS = (
    *(
        Fault(
            f"crash-{point}",
            f"a governor dies at `{point}`, one that slept goes on",
            partial(crash, point),
            all_is_right,
        )
        for point in POINTS
    ),
    *(
        Fault(
            f"crash-{point}",
            f"a governor dies at `{point}`, when a link starts",
            partial(crash_at_start_of_link, point),
            all_is_right,
        )
        for point in STARTING
    ),
    Fault(
        "crash-link-after-stop",
        "a governor dies at `link-after-stop`",
        crash_at_stop_of_link,
        all_is_right,
    ),
    Fault(
        "crash-link-after-purge",
        "a governor dies at `link-after-purge`",
        crash_at_purge,
        all_is_right,
    ),
)
STANDBY = (
    Fault(
        "standby-takes-over",
        "kill -9 of the governor beside a standby (goal 4 s)",
        standby,
        all_is_right,
    ),
    Fault(
        "governor-sleeps",
        "the governor is stopped past its session, replaced, and wakes up",
        sleeper,
        all_is_right,
    ),
    Fault(
        "governor-naps",
        "the same, and it wakes up while it might still act",
        partial(sleeper, naps=True),
        all_is_right,
    ),
)
