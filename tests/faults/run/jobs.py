"""What statements and connectors must survive: their controller's death, and that of their servers.

What came out is compared with what was written, by whoever wrote it.
"""

import os
import signal
import time
from collections.abc import Callable
from functools import partial

import psycopg
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from psycopg import sql

from local_platform.layout import Layout
from local_platform.supervision.state import PlatformState
from mesh_events.connectors import ConnectorAdded, ConnectorDeleted
from mesh_events.rows import ConnectorState, StatementState
from mesh_events.statements import StatementStarted, StatementStopped
from self_service.cli.connect import debezium
from self_service.cli.connect.databases import Database
from tests.faults.run.fault import Fault
from tests.faults.run.judge import all_is_right
from tests.faults.run.stage import WAIT_S, Stage, eventually, outsider
from tests.faults.run.takeover import awake, die, sleeping
from tests.integration.statements.conftest import PARTITIONS
from tests.integration.statements.conftest import Stage as Flow
from tests.mesh_fixtures import connect_service
from tests.mesh_kit import fresh

STARTING = ("statement-after-fence", "statement-after-tail", "statement-after-grant",
            "statement-after-start")  # fmt: skip
STATEMENT_S = 300
"""A domain's own Spark server starts on the way."""
CLICKS = 500


def flow_of(stage: Stage) -> Flow:
    """The one statement of the run; added when it is first needed, running when it is given."""
    if stage.flow is None:
        stage.flow = Flow(stage.kit, stage.owner)
        stage.flow.click(range(CLICKS), [1])
        text = "SELECT number FROM clicks WHERE number % 2 = 0"
        stage.flow.add(text, names={"clicks": stage.flow.clicks})
    stage.flow.until_active()
    return stage.flow


def more(flow: Flow) -> None:
    """Some more clicks."""
    flow.click(range(len(flow.clicked), len(flow.clicked) + CLICKS), [1])


def came_out(stage: Stage) -> list[str]:
    """Every click that has to come out is there, once, in its order; and all else is right."""
    flow = flow_of(stage)
    wanted = {
        partition: [
            number
            for number, _, place in flow.clicked
            if place == partition and number % 2 == 0 and number % 100 != 57
        ]
        for partition in range(PARTITIONS)
    }
    flow.until_landed(sum(map(len, wanted.values())))
    wrong = [] if flow.numbers() == wanted else [f"{flow.out} is not what has to come out"]
    dead = sorted(one.value for one in flow.landed(f"{flow.out}.dead"))
    if dead != sorted(b"poison %d" % number for number, *_ in flow.clicked if number % 100 == 57):
        wrong.append(f"{flow.out}.dead is not what cannot be read")
    return [*wrong, *all_is_right(stage)]


def crash_at_start(point: str, stage: Stage) -> float:
    """The statement starts again, and its controller dies on the way."""
    flow = flow_of(stage)
    flow.stop()
    more(flow)
    before = sum(flow.ends(flow.out).values())
    with sleeping(stage) as slept:
        dying = stage.worker(point)
        stage.owner.say(StatementStarted, statement=flow.statement)
        die(dying)
        began = time.monotonic()
    eventually(lambda: sum(flow.ends(flow.out).values()) > before, "more comes out", STATEMENT_S)
    recovery = time.monotonic() - began
    awake(stage, slept)
    return recovery


def crash_at_stop(stage: Stage) -> float:
    """The statement is stopped, and its controller dies when the query is."""
    flow = flow_of(stage)
    more(flow)
    with sleeping(stage) as slept:
        dying = stage.worker("statement-after-stop")
        stage.owner.say(StatementStopped, statement=flow.statement)
        die(dying)
    flow.wait_for(lambda one: one.state is StatementState.STOPPED, "it is stopped")
    began = time.monotonic()
    flow.start()
    recovery = time.monotonic() - began
    awake(stage, slept)
    return recovery


def kill_domains_spark(stage: Stage) -> float:
    """Clicks come on while the server of the statement's domain dies."""
    flow = flow_of(stage)
    victim = spark_pid(stage)
    assert victim is not None
    more(flow)
    before = sum(flow.ends(flow.out).values())
    os.kill(victim, signal.SIGKILL)
    began = time.monotonic()
    more(flow)
    eventually(lambda: spark_pid(stage) not in (None, victim), "a new server", STATEMENT_S)
    eventually(lambda: sum(flow.ends(flow.out).values()) > before, "more comes out", STATEMENT_S)
    return time.monotonic() - began


def spark_pid(stage: Stage) -> int | None:
    """The process that runs the owner's statements."""
    state = PlatformState.load(Layout(stage.home).state)
    assert state is not None
    return next((one.pid for one in state.services if one.name == stage.spark), None)


class Captured:
    """A table of the example database that a connector of the owner captures."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.name = stage, fresh("t").replace("-", "_")
        self.id = self.topic = f"{stage.owner.name}.{self.name}"
        self.rows = 0
        ends = stage.kit.endpoints
        self._place = Database(
            ends.postgres_host,
            ends.postgres_port,
            ends.postgres_user,
            ends.postgres_database,
            is_shared=True,
        )
        self._database = psycopg.connect(**ends.postgres_login(), autocommit=True)
        table = sql.Identifier(self.name)
        self._database.execute(sql.SQL("CREATE TABLE {} (n int PRIMARY KEY)").format(table))

    def insert(self, count: int = 50) -> None:
        """Some more rows, a transaction each."""
        statement = sql.SQL("INSERT INTO {} VALUES (%s)").format(sql.Identifier(self.name))
        for _ in range(count):
            self._database.execute(statement, (self.rows,))
            self.rows += 1

    def add(self) -> None:
        """Say that the table is to be captured."""
        config = debezium.config(self.id, [self.name], self._place)
        self.stage.owner.say(ConnectorAdded, connector=self.id, config=config)

    def until(self, state: ConnectorState, seconds: float = WAIT_S) -> None:
        """Wait until the log says so."""
        self.stage.kit.wait_for(
            lambda image: (
                (found := image.connectors.get(self.id)) is not None and found.state is state
            ),
            f"{self.id} is {state}",
            seconds,
        )

    def keys(self) -> list[bytes]:
        """Keys of the records that readers of committed records see; none before the topic is."""
        login = self.stage.kit.admin_login("east").config()
        with outsider({**login, "isolation.level": "read_committed"}) as consumer:
            place = TopicPartition(self.topic, 0, 0)
            try:
                end = consumer.get_watermark_offsets(place, timeout=5)[1]
            except KafkaException:
                return []
            consumer.assign([place])
            found: list[bytes] = []
            while consumer.position([place])[0].offset < end:
                message = consumer.poll(1)
                if message is None:
                    break
                if message.error() is None:
                    found.append(message.key() or b"")
            return found

    def come(self) -> None:
        """Wait until each row is in the topic, once or more often."""
        eventually(
            lambda: len(set(self.keys())) >= self.rows, f"{self.rows} rows are captured", WAIT_S
        )

    def wrong(self) -> list[str]:
        """Whether each row came out once."""
        self.come()
        found = len(self.keys())
        return [] if found == self.rows else [f"{found} records of {self.rows} rows"]

    def end(self) -> None:
        """Delete the connector, and wait until it is gone with its rights."""
        self.stage.owner.say(ConnectorDeleted, connector=self.id)
        self.until(ConnectorState.DELETED)
        principal = f"User:mesh.connect.{self.id}"
        every = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, principal, None,
            AclOperation.ANY, AclPermissionType.ANY,
        )  # fmt: skip
        admin = self.stage.kit.admin()
        held = admin.describe_acls(every).result(15)
        assert not held, held


def crash_at_add(point: str, stage: Stage) -> float:
    """A connector is added, and its controller dies on the way."""
    captured = Captured(stage)
    captured.insert()
    with sleeping(stage) as slept:
        dying = stage.worker(point)
        captured.add()
        die(dying)
        began = time.monotonic()
    captured.until(ConnectorState.ACTIVE)
    recovery = time.monotonic() - began
    awake(stage, slept)
    captured.insert()
    wrong = captured.wrong()
    assert not wrong, wrong
    captured.end()
    return recovery


def crash_at_drop(stage: Stage) -> float:
    """A connector is deleted, and its controller dies before it says so."""
    captured = Captured(stage)
    captured.insert()
    captured.add()
    captured.until(ConnectorState.ACTIVE)
    with sleeping(stage) as slept:
        dying = stage.worker("connector-after-delete")
        stage.owner.say(ConnectorDeleted, connector=captured.id)
        die(dying)
        began = time.monotonic()
    captured.until(ConnectorState.DELETED)
    recovery = time.monotonic() - began
    awake(stage, slept)
    return recovery


def kill_connect_reading(stage: Stage) -> float:
    """Kafka Connect dies before a table is read for the first time, or within: none is missed."""
    captured = Captured(stage)
    captured.insert()
    captured.add()
    captured.until(ConnectorState.ACTIVE)
    began = _kills(captured)
    captured.come()
    recovery = time.monotonic() - began
    captured.end()
    return recovery


def kill_connect(stage: Stage) -> float:
    """Rows come on while Kafka Connect dies, twice."""
    captured = Captured(stage)
    captured.insert()
    captured.add()
    captured.come()
    began = _kills(captured)
    wrong = captured.wrong()
    recovery = time.monotonic() - began
    assert not wrong, wrong
    captured.end()
    return recovery


def _kills(captured: Captured) -> float:
    """Kill the domain's worker twice while rows come; when the last kill was."""
    stage = captured.stage
    began = time.monotonic()
    for _ in range(2):
        captured.insert()
        before = stage.kill(connect_service(stage.owner.name))
        began = time.monotonic()
        captured.insert()
        stage.back(before)
    return began


def _fault(name: str, sentence: str, inject: Callable[[Stage], float]) -> Fault[Stage]:
    return Fault(name, sentence, inject, came_out, STATEMENT_S + 120)


FAULTS = (
    *(
        _fault(
            f"crash-{point}",
            f"a governor dies at `{point}`, when a statement starts",
            partial(crash_at_start, point),
        )
        for point in STARTING
    ),
    _fault(
        "crash-statement-after-stop", "a governor dies at `statement-after-stop`", crash_at_stop
    ),
    _fault(
        "domain-spark-killed",
        "kill -9 of a domain's own Spark server under its statement",
        kill_domains_spark,
    ),
    *(
        Fault(
            f"crash-{point}",
            f"a governor dies at `{point}`, when a connector is added",
            partial(crash_at_add, point),
            all_is_right,
        )
        for point in ("connector-after-rights", "connector-after-deploy")
    ),
    Fault(
        "crash-connector-after-delete",
        "a governor dies at `connector-after-delete`",
        crash_at_drop,
        all_is_right,
    ),
    Fault(
        "connect-killed-reading",
        "kill -9 of Kafka Connect, twice, before or while a table is read for the first time",
        kill_connect_reading,
        all_is_right,
    ),
    Fault(
        "connect-killed-capturing",
        "kill -9 of Kafka Connect, twice, under a table that is captured",
        kill_connect,
        all_is_right,
    ),
)
