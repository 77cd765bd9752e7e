"""The engine on a real Spark Connect server, by the contract and beyond it."""

import secrets
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil
import pytest

from local_platform import Endpoints, PlatformSettings
from local_platform.site import Site
from processors.clusters.rights import reader
from processors.connect.principals import group_of
from processors.controllers.flows.ends import ClusterLogs, allowed
from processors.controllers.flows.fence import claim, fresh_writer, writing
from processors.mirror.config import reading as reading_of
from processors.mirror.config import writing as writing_of
from spark_streams.engine import CopySpec, Failed, FlowEngine, Running
from spark_streams.errors import EngineError
from spark_streams.provenance import Origin
from spark_streams.spark import SparkEngine
from tests.links.engine_contract import EngineContract
from tests.links.real import DOMAIN, RealLink, RealMirror, until
from tests.mesh_fixtures import TESTERS, connect_service, domain_server, pid_of, spark_service


class RealEngine(EngineContract):
    """What both engines' tests share: a real link's topics and logins."""

    link: RealLink

    def spec(self, writer: str, *, may_write: bool = True) -> CopySpec:
        link, topic = self.link, self.link.topic
        writer = fresh_writer(link.harness.name)
        passwords = secrets.token_hex(8), secrets.token_hex(8)
        link.east.set_password(writer, passwords[0])
        link.west.set_password(writer, passwords[1])
        link.east.grant(reader(writer, topic))
        link.west.grant([writing(writer, topic) if may_write else claim(writer, topic)])
        self.allow_more(writer)
        spec = CopySpec(
            link=link.harness.name,
            writer=writer,
            source=link.east.connection(writer, passwords[0]),
            source_topic=topic,
            origin=Origin("east", link.east.topic(topic).id),
            destination=link.west.connection(writer, passwords[1]),
            destination_topic=topic,
            start={0: 2},
            max_record_bytes=1_000_000,
        )
        allowed(ClusterLogs(spec.source.tls), spec.source, topic)
        allowed(ClusterLogs(spec.source.tls), spec.destination, topic)
        return spec

    def allow_more(self, writer: str) -> None:
        """Nothing more is needed."""

    def produce(self, keys: list[bytes]) -> None:
        self.link.produce(*[(0, key, b"v", None) for key in keys])

    def copied(self) -> list[bytes]:
        return [key for _, key, _, _ in self.link.copy()[0]]

    def wait(self, condition: Callable[[], bool]) -> None:
        until(condition, 60)

    @abstractmethod
    def tells_another_topic(self, spec: CopySpec) -> bool:
        """Whether the copy has seen that its source is another topic."""

    def test_a_topic_that_is_made_anew_is_not_copied(self) -> None:
        self.produce([b"0", b"1", b"2"])
        spec = self.spec("one")
        self.engine.start(spec)
        self.wait(lambda: self.copied() == [b"2"])
        self.link.recreate(self.link.east)
        # the position that was reached is one of the new topic's, too
        self.produce([b"new"] * 100)
        self.wait(lambda: self.tells_another_topic(spec))
        assert self.copied() == [b"2"]


class TestMirrorEngine(RealEngine):
    link: RealMirror

    @pytest.fixture(autouse=True)
    def _world(self, platform: Endpoints, settings: PlatformSettings) -> Iterator[None]:
        self.link = RealMirror(platform, partitions=1)
        self.log = Site.of(settings).layout.log(connect_service())
        self.link.west.create_topic(self.link.topic, 1, {})
        self.engine = self.link.new_mirror()
        yield
        self.engine.close()
        self.link.close()

    def other_process(self) -> FlowEngine:
        return self.link.new_mirror()

    def tells_another_topic(self, spec: CopySpec) -> bool:
        """Only in its log: MirrorMaker reads on after whatever happens."""
        return f"the topic {spec.source_topic} was deleted and made again" in self.log.read_text()

    def allow_more(self, writer: str) -> None:
        self.link.east.grant(reading_of(writer))
        self.link.west.grant(writing_of(writer, group_of(TESTERS)))

    def test_a_connector_that_somebody_stopped_has_failed(self) -> None:
        self.produce([b"0", b"1", b"2"])
        spec = self.spec("one")
        self.engine.start(spec)
        self.link.new_mirror().api.stop(spec.writer)
        self.wait(lambda: self.states(self.engine, spec) != (Running(spec.writer),))
        (state,) = self.states(self.engine, spec)
        assert state == Failed(spec.writer, "its connector is STOPPED, not by the mesh")

    def test_what_connect_remembers_of_an_earlier_one_is_forgotten(self) -> None:
        self.produce([b"0", b"1", b"2", b"3"])
        first = self.spec("one")
        self.engine.start(first)
        self.wait(lambda: self.copied() == [b"2", b"3"])
        self.engine.stop(first.link)
        self.engine.start(self.spec("two"))
        self.wait(lambda: self.copied() == [b"2", b"3", b"2", b"3"])

    def test_no_password_is_left_behind(self) -> None:
        self.produce([b"0", b"1", b"2"])
        spec = self.spec("one")
        self.engine.start(spec)
        folder = self.link.endpoints.connect_secrets
        assert list(folder.rglob(spec.writer))
        self.engine.stop(spec.link)
        assert not list(folder.rglob(spec.writer))


class TestSparkEngine(RealEngine):
    @pytest.fixture(autouse=True)
    def _world(self, platform: Endpoints) -> Iterator[None]:
        self.link = RealLink(platform, partitions=1)
        self.link.west.create_topic(self.link.topic, 1, {})
        self.engine = self.link.new_engine()
        yield
        self.engine.close()
        self.link.close()

    def other_process(self) -> FlowEngine:
        return self.link.new_engine()

    def tells_another_topic(self, spec: CopySpec) -> bool:
        (state,) = self.states(self.engine, spec)
        return isinstance(state, Failed) and state.reason == "UnknownTopicIdException"

    def test_a_session_that_was_closed_is_replaced(self) -> None:
        """A closed id is dead for the server's life; every process finds the same next one."""
        self.produce([b"0", b"1", b"2"])
        spec = self.spec("one")
        self.engine.start(spec)
        self.engine._session._session.stop()  # type: ignore[attr-defined]
        self.engine.close()
        other = self.link.new_engine()
        assert self.states(other, spec) == ()
        other.start(spec)
        third = self.link.new_engine()
        assert self.states(third, spec) == (Running(spec.writer),)
        third.stop(spec.link)
        other.close()
        third.close()

    def test_one_that_was_refused_leaves_the_brokers_alone(
        self, settings: PlatformSettings
    ) -> None:
        """Kafka's producer asks on without a pause while it is refused, so it has to go."""
        before = connections(settings, self.link.endpoints)
        self.produce([b"0", b"1", b"2"])
        spec = self.spec("one", may_write=False)
        with suppress(EngineError):
            self.engine.start(spec)

        def refused() -> bool:
            # a query notices with its next record
            self.produce([b"more"])
            return any(isinstance(state, Failed) for state in self.states(self.engine, spec))

        self.wait(refused)
        self.engine.stop(spec.link)
        self.wait(lambda: not connections(settings, self.link.endpoints) - before)


def connections(settings: PlatformSettings, endpoints: Endpoints) -> set[int]:
    """Local ports from which the domain's Spark server speaks to the destination's broker."""
    broker = int(endpoints.clusters["west"].bootstrap_servers.rpartition(":")[2])
    return {
        one.laddr.port
        for one in psutil.Process(pid_of(settings, spark_service(DOMAIN))).net_connections("tcp")
        if one.raddr and one.raddr.port == broker
    }


def test_a_wrong_token_is_told_and_no_traceback(platform: Endpoints) -> None:
    engine = SparkEngine(domain_server(platform, DOMAIN)[0], "wrong", uuid.uuid4().hex)
    with pytest.raises(Exception, match="UNAUTHENTICATED") as caught:
        engine.states()
    assert caught.value.code == "engine_unavailable"  # type: ignore[attr-defined]
    engine.close()
