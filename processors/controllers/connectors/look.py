"""One look of the connectors controller at one connector: what is next for it is done.

It is let in, handed to Connect, helped when it failed and watched while it runs; what is not to run
loses its rights first.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog

from mesh_events.connectors import Configured
from mesh_events.errors import InfrastructureError, MeshError, RefusedError
from mesh_events.meta import shortened
from processors.clusters import logins
from processors.clusters.kafka import ClusterAdmin
from processors.clusters.rights import Resource
from processors.connect.cluster import ConnectCluster
from processors.connect.principals import principal_of
from processors.connect.rest import Deployed, cause
from processors.controllers.connectors import sink_topics
from processors.controllers.connectors.reporter import ConnectorReporter
from processors.controllers.controller import Leadership
from processors.controllers.flows.ends import until
from processors.controllers.flows.pace import Pace
from processors.controllers.gates import Gates
from processors.controllers.retry import wait_before
from processors.crash_points import crash_point
from processors.spark.error_files import ErrorFiles
from projections.connectors import system_tables
from projections.connectors.config import replaces_rows
from projections.connectors.state import Connector, State
from projections.identity import LOGIN_TAKEN
from projections.image import Image
from projections.lineage.runs import open_run
from projections.lineage.sources import not_granted
from projections.links import Desired

log = structlog.get_logger(__name__)
RETRY_FIRST_S, RETRY_MOST_S = 2.0, 300.0
TAKES_S = 1.0
"""What Connect tells of a connector so soon after a change may be from before it."""
STALE_S = 10.0
"""The same of a failure that it had before the change: its task may end so once more, or not have
been replaced yet."""
APPEARS_S = 5.0
"""A connector that was just made is not listed at once."""
MENDED_S, STEADY_S = 5.0, 60.0
"""What was helped is told as running after so long, and helped at once again only after longer: so
what fails again and again is told ever less often, too."""
SILENT_S = 10.0
"""For so long a server may be silent before that is a failure of what runs there."""
ORPHAN_S, STARTS_S = 20.0, 60.0
"""What ran is told after so long without a task that runs; what is still to start, later: on a busy
machine a task may need half a minute for that."""
MISSING = "Kafka Connect has lost it: it is deployed again"
NOT_UP = (
    "its tasks have not started yet: what they ask as they start, such as the database of the "
    "config, may not answer"
)
NOT_STARTED = "Kafka Connect was started anew and does not run it yet"
"""Reasons that are reported of what does not run any more, though nothing failed."""
_NEVER = float("-inf")
_LONGEST = 600
"""Characters of a reason."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What this process knows of a connector at one generation; losing it costs a restart at most.

    Times are the clock's. `deployed`: when Connect took this generation's config; `attempts` to
    help it since it last ran steadily, the next one not before `not_before`; `failed`: its last
    failure, also of the generation before; `before`: that at `deployed`; `since` it runs;
    `lonely` since no task of it runs; `faulty` since a server does not answer for it; `shaken`: it
    has to run for a while before that is told; `seen_in`: epoch of the leader that saw it run last.
    `started`: the topics, with their ids, as which a sink was started; `partitions` that these had,
    of one that replaces rows. `begun`: a run that was reported, and the one before, until the log
    counts it: one that was stopped meanwhile never ran.
    """

    generation: int
    deployed: float | None = None
    attempts: int = 0
    not_before: float = _NEVER
    failed: str | None = None
    before: str | None = None
    since: float | None = None
    lonely: float | None = None
    faulty: float | None = None
    shaken: bool = False
    seen_in: int = -1
    lineage: float = _NEVER
    started: sink_topics.TopicIds = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)
    begun: tuple[str, str | None] | None = None


class Around(Protocol):
    """What the controller knows beside one look."""

    gates: Gates
    pace: Pace
    errors: ErrorFiles | None

    @property
    def versions(self) -> Callable[[str], Sequence[int]]:
        """Gives the versions of a subject in the registry."""

    @property
    def latest(self) -> Callable[[], Image]:
        """Gives the state by the latest record of the log."""

    def put_at(self, connector: str) -> float:
        """When a connector was last handed to Connect, by the clock."""

    def was_put(self, connector: str) -> None:
        """It is handed to Connect now."""

    def tells(self, connector: Connector, code: str) -> bool:
        """Whether a failure is to be told, so soon after the last one."""


def withheld(connector: Connector, image: Image) -> RefusedError | None:
    """Why a connector may not run now, though it is desired; None if it may."""
    if connector.domain in image.identity.quarantines:
        return RefusedError(
            "domain_quarantined",
            f"{connector.domain} is in quarantine: the connector goes on after its release",
        )
    # what an earlier version has accepted
    if (fault := system_tables.fault(connector.config)) is not None:
        return RefusedError("invalid_connector", fault)
    missing = not_granted(
        image, connector.domain, connector.application, connector.cluster, connector.reads
    )
    if not missing:
        return None
    reader = connector.application or f"an application of {connector.domain}"
    return RefusedError(
        "source_not_granted",
        f"{', '.join(missing)} is not granted to {reader} any more: the connector goes on when it "
        "is granted again, or delete it",
    )


@dataclass
class Look:
    """One look at one connector."""

    controller: Around
    connect: ConnectCluster
    connector: Connector
    cluster: Callable[[], ClusterAdmin]
    reporter: ConnectorReporter
    leadership: Leadership
    memory: Memory
    deployed: Deployed | None = None
    topics: sink_topics.TopicIds = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)

    def begin(self) -> bool:
        """Put a run into the lineage that the log counts by now."""
        if self.memory.begun is not None and self.memory.begun[0] == self.connector.run:
            run, before = self.memory.begun
            self.reporter.began(run, before)
            self.memory = replace(self.memory, begun=None, lineage=self._now())
        return True

    def settle(self, image: Image) -> bool:
        """Do what is next; whether nothing more is to be done for now."""
        if self.connector.desired is Desired.DELETED:
            return self._removed()
        if self.connector.desired is Desired.PAUSED:
            if not self._still():
                return False
            if not self.connector.is_at_rest:
                self.reporter.halted()
            return True
        if (reason := withheld(self.connector, image) or self._unfit(image)) is not None:
            if not self._still():
                return False
            self.tell(reason.code, str(reason))
            # what comes back begins anew
            self.memory = Memory(self.connector.generation, begun=self.memory.begun)
            return True
        if sink_topics.has_other_positions(self.connector, self.memory.started, self.topics):
            return self._reads_anew(image)
        return self._runs(image)

    def disarm_unfit(self, image: Image) -> bool:
        """Take the rights of a sink whose topics are not those that it has read."""
        return self._unfit(image) is None or self.disarm()

    def disarm(self) -> bool:
        """Take all of its rights and see them gone, and end what it has left open.

        A source's open transaction would hold up all who read the topic of its domain's offsets.
        """
        admin, principal = self.cluster(), principal_of(self.connector.id)
        held = admin.rights(principal=principal)
        if held:
            self.leadership.check()
            admin.withdraw(sorted(held))
            until(
                lambda: not admin.rights(principal=principal) or None,
                f"the rights of {self.connector.id} on {self.connector.cluster} to be gone",
            )
            for one in held:
                if one.resource is Resource.TRANSACTIONAL_ID and not one.prefixed:
                    admin.end_transactions(one.name)
        return True

    def refused(self, code: str, reason: str, text: str = "") -> None:
        """It cannot be as desired; the next try is some time away."""
        self._later()
        self.tell(code, reason, text=text)

    @property
    def is_unconfirmed(self) -> bool:
        """Whether the log says ACTIVE, which nobody has seen in this leadership."""
        is_active = self.connector.state is State.ACTIVE
        return is_active and self.memory.seen_in != self.leadership.epoch

    def unconfirmed(self, code: str, reason: str, text: str = "") -> None:
        """Report what does not run though the log says ACTIVE; it is not started twice for that."""
        self.memory = replace(self.memory, deployed=self._now(), since=None, shaken=True)
        self.tell(code, reason, text=text)

    def hampered(self, error: MeshError) -> None:
        """A server does not answer for it: for a moment that is nothing to tell."""
        now, faulty = self._now(), self.memory.faulty
        since = now if faulty is None else faulty
        self.memory = replace(self.memory, faulty=since)
        log.warning("connector_not_settled", id=self.connector.id, error=str(error))
        if self.connector.desired is not Desired.RUNNING or self.connector.is_at_rest:
            return
        is_patient = self.connector.state is State.ACTIVE and not self.is_unconfirmed
        if is_patient and now - since < SILENT_S:
            return
        self._later()
        self.tell("infrastructure", str(error), text=error.text)

    def tell(self, code: str, reason: str, tasks: Iterable[int] = (), text: str = "") -> None:
        """Report a failure, without secrets, and not too often; its full `text` stays local."""
        connector, cleared = self.connector, self.connect.cleared
        told = shortened(cleared(connector.id, connector.cluster, reason)[:_LONGEST])
        if (code, told) == (connector.failure_code, connector.failure):
            return
        if not self.controller.tells(connector, code):
            return
        if self.controller.errors is not None:
            full = cleared(connector.id, connector.cluster, text)
            self.controller.errors.save("connector", connector.id, code, full)
        started, partitions = self.memory.started, self.memory.partitions
        self.reporter.failed(code, told, list(tasks), started, partitions)

    def _now(self) -> float:
        return self.controller.pace.clock()

    def _later(self) -> None:
        """The next try is some time away, ever more."""
        attempts = self.memory.attempts + 1
        not_before = self._now() + wait_before(attempts, RETRY_FIRST_S, RETRY_MOST_S)
        self.memory = replace(
            self.memory, attempts=attempts, not_before=not_before, since=None, shaken=True
        )

    def _unfit(self, image: Image) -> RefusedError | None:
        """Why a sink may not read its topics as they are at this moment."""
        reads = self.connector.reads
        found = self.cluster().topic_sizes(reads) if reads else {}
        self.topics = {topic: topic_id for topic, (topic_id, _) in found.items()}
        replaces = replaces_rows(self.connector.config)
        self.partitions = {topic: count for topic, (_, count) in found.items()} if replaces else {}
        started = self.memory.started
        unfit = sink_topics.refusal(self.connector, image.connectors, started, self.topics)
        parted = sink_topics.parted_keys(self.connector, self.topics, self.partitions)
        return unfit or parted or self._moved_keys()

    def _moved_keys(self) -> RefusedError | None:
        """Whether the latest record of a key is not known; what runs waits for no registry."""
        try:
            return sink_topics.moved_keys(
                self.connector, self.controller.versions, self.cluster().topic
            )
        except InfrastructureError:
            if self.connector.state is not State.ACTIVE:
                raise
            return None

    def _reads_anew(self, image: Image) -> bool:
        """Read from the begin what was made anew: its positions are another topic's."""
        connector, epoch = self.connector, self.leadership.epoch
        if self.deployed is not None and not self.deployed.is_still:
            if self.deployed.connector.state != "STOPPED":
                self.leadership.check()
                self.connect.api.stop(connector.id)
            return False
        self.leadership.check()
        if not self.cluster().delete_group(sink_topics.group_of(connector.id)):
            # its consumer leaves, or is taken for gone in a while: then the next look goes on
            return True
        was_active = connector.state is State.ACTIVE
        if was_active:
            self.tell(sink_topics.RECREATED, sink_topics.read_anew(connector, self.topics))
        taken = self._now() if was_active else None
        self.memory = Memory(
            connector.generation,
            deployed=taken,
            seen_in=epoch,
            started=self.topics,
            partitions=self.partitions,
        )
        return self._runs(image)

    def _runs(self, image: Image) -> bool:
        """Deploy, help and watch."""
        deployed, connector = self.deployed, self.connector
        if self.is_unconfirmed and not self._confirmed():
            return True
        servers = image.identity.clusters[connector.cluster].bootstrap_servers
        wanted = self.connect.config(
            connector.id, connector.config, connector.cluster, servers, self.topics
        )
        taken = self.memory.deployed
        fresh = taken is None and connector.state is not State.ACTIVE
        if fresh or deployed is None or dict(deployed.config) != wanted:
            if taken is not None and self._now() - taken < APPEARS_S:
                return False
            return self._now() < self.memory.not_before or self._deploy(wanted)
        failure = deployed.failure
        is_stale = failure is not None and failure == self.memory.before
        if taken is not None and self._now() - taken < (STALE_S if is_stale else TAKES_S):
            return False
        self._allow()
        if deployed.connector.state in ("STOPPED", "PAUSED"):
            self.leadership.check()
            self.connect.api.resume(connector.id)
            return False
        if deployed.failed:
            return self._help(deployed)
        if not deployed.runs:
            return self._waits(deployed)
        return self._steady(deployed)

    def _confirmed(self) -> bool:
        """Whether Connect runs what the log says is ACTIVE; reported at once if it does not.

        Connect may have been started anew while no worker looked.
        """
        deployed = self.deployed
        if deployed is not None and deployed.runs:
            self.memory = replace(self.memory, seen_in=self.leadership.epoch)
            return True
        if deployed is None:
            self.unconfirmed("connector_failed", MISSING)
        elif deployed.failed:
            self._tell_failed(deployed)
            self.memory = replace(self.memory, deployed=self._now(), shaken=True)
        else:
            parts = (deployed.connector, *deployed.tasks)
            states = ", ".join(sorted({one.state for one in parts}))
            self.unconfirmed("tasks_waiting", f"{NOT_STARTED}: its parts are {states}")
        return False

    def _deploy(self, wanted: dict[str, str]) -> bool:
        """Let it in, and hand it to Connect; the same config again is started anew."""
        connector, before = self.connector, self.deployed
        self.connect.require_place(connector.id, connector.config)
        self._admit()
        crash_point("connector-after-rights")
        self.leadership.check()
        same = before is not None and dict(before.config) == wanted
        if not same:
            self.controller.was_put(connector.id)
            self.connect.api.put(connector.id, wanted)
            if before is not None:
                self.connect.secrets.replaced(connector.id, before.config, wanted)
            self._sweep(wanted)
        if before is not None and before.connector.state in ("STOPPED", "PAUSED"):
            self.connect.api.resume(connector.id)
        elif same or (before is not None and before.failed):
            # what failed would stay so under the new config too
            self.connect.api.restart(connector.id, failed_only=not same)
        crash_point("connector-after-deploy")
        self._note_failure()
        failed = self.memory.failed
        self.memory = replace(
            self.memory,
            deployed=self._now(),
            before=failed,
            since=None,
            lonely=None,
            started=self.topics,
            partitions=self.partitions,
        )
        return False

    def _sweep(self, config: Mapping[str, str]) -> None:
        """Remove secrets that neither this config names nor one that waits for its decision."""
        connector, secrets = self.connector.id, self.connect.secrets
        waiting = {
            secrets.setting(connector, value)
            for entry in self.controller.latest().intents.undecided.values()
            if isinstance(entry.event, Configured) and entry.event.connector == connector
            for value in entry.event.config.values()
        }
        secrets.sweep(connector, {*config.values(), *waiting})

    def _note_failure(self) -> None:
        """Keep how it has failed: what is started again fails so once more under the old config."""
        if self.deployed is not None and self.deployed.failure is not None:
            self.memory = replace(self.memory, failed=self.deployed.failure)

    def _help(self, deployed: Deployed) -> bool:
        """Tell what has failed, and start it again when it is time."""
        self._tell_failed(deployed)
        if self._now() < self.memory.not_before:
            return True
        self._admit()
        self.leadership.check()
        self.connect.api.restart(deployed.name, failed_only=True)
        self._later()
        return True

    def _tell_failed(self, deployed: Deployed) -> None:
        self._note_failure()
        part = deployed.failed[0]
        what = "the connector" if part.task is None else f"task {part.task}"
        code = "connector_failed" if part.task is None else "task_failed"
        tasks = [one.task for one in deployed.failed if one.task is not None]
        told = f"{what}: {cause(part)} (it is started again by itself, ever less often)"
        self.tell(code, told, tasks, part.trace)

    def _waits(self, deployed: Deployed) -> bool:
        """It is on its way; when it stays so for long, that is told."""
        lonely = self.memory.lonely if self.memory.lonely is not None else self._now()
        self.memory = replace(self.memory, lonely=lonely, since=None)
        longest = ORPHAN_S if self.connector.state is State.ACTIVE else STARTS_S
        if self._now() - lonely < longest:
            return False
        states = {one.state for one in deployed.tasks}
        # one that starts is RESTARTING
        if states - {"RESTARTING"}:
            told = ", ".join(sorted(states))
            self.tell("tasks_waiting", f"its tasks are {told}: no Connect worker runs them")
        elif deployed.planned:
            self.tell("tasks_waiting", NOT_UP)
        else:
            self.tell("no_tasks", "it runs and has no task: its config leaves it nothing to do")
        return True

    def _steady(self, deployed: Deployed) -> bool:
        """It runs: told at once, but of what was helped only when it goes on running."""
        now = self._now()
        since = self.memory.since if self.memory.since is not None else now
        self.memory = replace(self.memory, since=since, lonely=None)
        if self.connector.state is not State.ACTIVE:
            if self.memory.shaken and now - since < MENDED_S:
                return False
            run = self.reporter.activated(
                principal_of(self.connector.id),
                len(deployed.tasks),
                self.memory.attempts,
                self.topics,
                self.partitions,
            )
            begun = run, open_run(self.connector)
            self.memory = replace(
                self.memory, shaken=False, seen_in=self.leadership.epoch, begun=begun
            )
        elif self._reads_unknown():
            # one that ran before topics had ids on the log, or a topic that was created later
            self.reporter.reads(self.topics, self.partitions)
        elif now - self.memory.lineage >= self.controller.pace.lineage:
            self.memory = replace(self.memory, lineage=now)
            self.reporter.goes_on()
            self._sweep(deployed.config)
        if self.memory.attempts and now - since >= STEADY_S:
            self.memory = replace(self.memory, attempts=0)
        return True

    def _reads_unknown(self) -> bool:
        """Whether it reads topics of which the log has no id, or no number of partitions."""
        found = self.connector
        return any(topic not in found.topic_ids for topic in self.topics) or any(
            topic not in found.partitions for topic in self.partitions
        )

    def _admit(self) -> None:
        """Its login, and its rights."""
        connector, principal = self.connector, principal_of(self.connector.id)
        secrets = self.connect.secrets
        password = secrets.ensure_login(connector.cluster, principal)
        place = secrets.login_reference(connector.cluster, principal)
        logins.require_ours(self.cluster(), principal, [password], place=place)
        self.leadership.check()
        self.cluster().set_password(principal, password)
        self._allow()

    def _allow(self) -> None:
        """Exactly the rights that its config calls for, under what the log says by now."""
        admin, connector = self.cluster(), self.connector
        principal = principal_of(connector.id)
        wanted = self.connect.rights(connector.id, connector.config)
        actual = admin.rights(principal=principal)
        if actual == wanted:
            return
        with self.controller.gates(connector.cluster):
            latest = self.controller.latest()
            if (reason := withheld(connector, latest)) is not None:
                raise reason
            if admin.topic_ids(connector.reads) != self.topics:
                topics = ", ".join(connector.reads)
                raise InfrastructureError(
                    f"a topic of {topics} was created or deleted at this moment", retriable=True
                )
            self.leadership.check()
            admin.grant(sorted(wanted - actual))
            admin.withdraw(sorted(actual - wanted))
        until(
            lambda: wanted <= admin.rights(principal=principal) or None,
            f"the rights of {connector.id} on {connector.cluster} to be there",
        )

    def _still(self) -> bool:
        """Stop it and take its rights; whether that is so."""
        self.disarm()
        if self.deployed is None:
            # what is at rest is stopped again once it is listed
            return self.connector.is_at_rest or self._is_gone(self.connect.api.stop)
        if self.deployed.is_still:
            return True
        if self.deployed.connector.state != "STOPPED":
            self.leadership.check()
            self.connect.api.stop(self.connector.id)
        return False

    def _removed(self) -> bool:
        """Remove it with its login and its secrets, and say so."""
        connector, principal = self.connector, principal_of(self.connector.id)
        secrets = self.connect.secrets
        self.disarm()
        if self.deployed is not None:
            self.leadership.check()
            self.connect.api.delete(connector.id)
            return False
        if not self._is_gone(self.connect.api.delete):
            return False
        crash_point("connector-after-delete")
        if self._has_login(principal):
            self.leadership.check()
            self.cluster().retire_login(principal)
        self.leadership.check()
        secrets.forget(connector.id, connector.cluster, principal)
        self.reporter.halted()
        return True

    def _has_login(self, principal: str) -> bool:
        """Whether there is a login that the mesh has made for it, and not somebody else."""
        connector, secrets = self.connector, self.connect.secrets
        if not secrets.knows_login(connector.cluster, principal):
            return False
        stored = secrets.ensure_login(connector.cluster, principal)
        place = secrets.login_reference(connector.cluster, principal)
        issued = connector.principal is not None
        try:
            logins.require_ours(self.cluster(), principal, [stored], issued=issued, place=place)
        except RefusedError as error:
            if error.code != LOGIN_TAKEN:
                raise
            return False
        return True

    def _is_gone(self, end: Callable[[str], bool]) -> bool:
        """Whether what Connect does not list is gone, and not just being made; ended meanwhile.

        A worker lists nothing before it has read its configs, and answers by name behind that.
        """
        self.leadership.check()
        if end(self.connector.id):
            return False
        # one that was handed over a moment ago may be on its way
        return self._now() - self.controller.put_at(self.connector.id) >= APPEARS_S
