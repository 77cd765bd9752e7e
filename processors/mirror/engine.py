"""Links that MirrorMaker 2 copies: a connector for each, on the Connect cluster of its domain."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from mesh_events.errors import MeshError, RefusedError
from mesh_events.kafka.connection import is_denied, translated
from processors.connect.own_worker import StartingError
from processors.connect.rest import Connect, Deployed, cause
from processors.connect.secrets import ConnectSecrets
from processors.mirror.config import config_of, link_of
from spark_streams.engine import Answer, CopySpec, Failed, Running, States
from spark_streams.errors import ENGINE_STARTING, EngineError

_TIMEOUT_S = 30.0
_POLL_S = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class MirrorEngine:
    """A FlowEngine over Connect's REST API.

    Args:
        api: the Connect cluster.
        secrets: the folder that it reads passwords from.
        timeout_s: how long a connector may take for one step, seconds.
    """

    api: Connect
    secrets: ConnectSecrets
    timeout_s: float = _TIMEOUT_S

    @property
    def is_stopped(self) -> bool:
        """Whether its worker is."""
        return self.api.is_stopped

    def states(self) -> States:
        """Every link's connector, also those made by an earlier process."""
        states: dict[str, tuple[Running | Failed, ...]] = {}
        with _translating():
            for writer, found in self.api.deployed().items():
                if (link := link_of(writer)) is not None:
                    states[link] = (*states.get(link, ()), _state(found))
        return states

    def require_room(self, link: str, partitions: int) -> None:
        """One task copies all partitions."""
        del link, partitions

    def start(self, spec: CopySpec) -> None:
        """Make the connector and return when its task runs.

        It begins where the group of its reader stands.

        Raises:
            EngineError: `engine_unavailable` or `query_failed`.
        """
        if spec.source_topic != spec.destination_topic:
            raise EngineError(
                "query_failed",
                f"MirrorMaker copies {spec.source_topic} under the same name only, "
                f"not as {spec.destination_topic}: resume the link with --engine spark",
            )
        with _translating():
            source = self._password(spec.origin.cluster, spec.writer, spec.source.password)
            there = spec.link.rpartition("@")[2]
            destination = self._password(there, spec.writer, spec.destination.password)
            self._place(spec)
            self.api.put(spec.writer, config_of(spec, source, destination))
            seen = self._until(
                f"the connector {spec.writer} to run",
                lambda found: spec.writer in found and _settled(found[spec.writer]),
            )
            if failed := seen[spec.writer].failed:
                why = f"the connector ended: {cause(failed[0])}"
                raise EngineError("query_failed", why, failed[0].trace)

    def stop(self, link: str) -> None:
        """Remove every connector of a link, and their passwords; none is fine."""
        with _translating():
            # a worker that has just started lists none, but drops those that were handed to it
            for writer in {*self.api.deployed(), *self.secrets.principals()}:
                if link_of(writer) == link:
                    self.api.delete(writer)
            self._until(
                f"the connectors of {link} to be gone",
                lambda found: link not in map(link_of, found),
            )
            self.secrets.forget_logins(lambda principal: link_of(principal) == link)

    def progress(self, link: str) -> Mapping[int, int]:
        """Nothing: a copy tells by itself how far it has come."""
        del link
        return {}

    def ask(self, doing: str, act: Callable[[Any], Answer]) -> Answer:
        """There is no session of Spark here."""
        del act
        raise EngineError("engine_unavailable", f"{doing}: MirrorMaker copies, and nothing else")

    def close(self) -> None:
        """Nothing is held open; the connectors go on."""

    def _password(self, cluster: str, writer: str, password: str) -> str:
        self.secrets.store_login(cluster, writer, password)
        return self.secrets.login_reference(cluster, writer)

    def _place(self, spec: CopySpec) -> None:
        """Let the reader's group stand where the copy goes on, for every partition."""
        doing = f"placing the reader of {spec.source_topic} at {spec.source.bootstrap_servers}"
        settings = spec.source.config(group_id=spec.writer, enable_auto_commit=False)
        consumer = Consumer(settings)
        places = [TopicPartition(spec.source_topic, p, at) for p, at in spec.start.items()]
        deadline = time.monotonic() + self.timeout_s
        try:
            while True:
                try:
                    consumer.commit(offsets=places, asynchronous=False)
                except KafkaException as error:
                    fault = error.args[0]
                    # a right that was given a moment ago may not be known to the broker yet
                    may_come = is_denied(fault) or fault.retriable()
                    if not may_come or time.monotonic() > deadline:
                        raise translated(fault, doing) from error
                    time.sleep(_POLL_S)
                else:
                    return
        finally:
            consumer.close()

    def _until(
        self, what: str, reached: Callable[[Mapping[str, Deployed]], bool]
    ) -> Mapping[str, Deployed]:
        """The connectors, once they are as they should be."""
        deadline = time.monotonic() + self.timeout_s
        while not reached(found := self.api.deployed()):
            if time.monotonic() > deadline:
                raise EngineError(
                    "engine_unavailable",
                    f"waited {self.timeout_s:g} s for {what}: see `sdm status` and Connect's log",
                )
            time.sleep(_POLL_S)
        return found


@dataclass(frozen=True, slots=True)
class NoEngine:
    """In place of an engine that this mesh does not have; `why` names what to set."""

    why: str

    @property
    def is_stopped(self) -> bool:
        """It says why there is none."""
        return False

    def states(self) -> States:
        """Say why there is none."""
        raise EngineError("engine_unavailable", self.why)

    def require_room(self, link: str, partitions: int) -> None:
        """Say why there is none."""
        del link, partitions
        raise EngineError("engine_unavailable", self.why)

    def start(self, spec: CopySpec) -> None:
        """Say why there is none."""
        del spec
        raise EngineError("engine_unavailable", self.why)

    def stop(self, link: str) -> None:
        """Say why there is none."""
        del link
        raise EngineError("engine_unavailable", self.why)

    def progress(self, link: str) -> Mapping[int, int]:
        """Nothing runs."""
        del link
        return {}

    def ask(self, doing: str, act: Callable[[Any], Answer]) -> Answer:
        """Say why there is none."""
        del doing, act
        raise EngineError("engine_unavailable", self.why)

    def close(self) -> None:
        """Nothing is open."""


def _settled(found: Deployed) -> bool:
    """Whether it runs, or has failed so that its state says why."""
    return found.runs or bool(found.failed)


def _state(found: Deployed) -> Running | Failed:
    if found.failed:
        return Failed(found.name, cause(found.failed[0]), found.failed[0].trace)
    if found.connector.state in ("STOPPED", "PAUSED"):
        return Failed(found.name, f"its connector is {found.connector.state}, not by the mesh")
    return Running(found.name)


@contextmanager
def _translating() -> Iterator[None]:
    """Raise the engine's errors instead of Connect's and Kafka's inside the block."""
    try:
        yield
    except EngineError:
        raise
    except StartingError as error:
        raise EngineError(ENGINE_STARTING, str(error)) from error
    except RefusedError as error:
        raise EngineError("query_failed", str(error), error.text) from error
    except MeshError as error:
        raise EngineError("engine_unavailable", str(error), error.text) from error
