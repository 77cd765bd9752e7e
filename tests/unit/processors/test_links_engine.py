"""The engine in memory keeps the promises that the real one keeps."""

from collections.abc import Callable

import pytest

from processors.clusters.rights import reader
from processors.controllers.flows.fence import writing
from spark_streams.engine import CopySpec, FlowEngine
from spark_streams.provenance import Origin
from tests.links.engine_contract import EngineContract
from tests.links.memory import MemoryLink


class TestMemoryEngine(EngineContract):
    @pytest.fixture(autouse=True)
    def _world(self) -> None:
        self.link = MemoryLink(partitions=1)
        self.link.west.create_topic(self.link.topic, 1, {})
        self.engine = self.link.engine

    def other_process(self) -> FlowEngine:
        return self.engine

    def spec(self, writer: str, *, may_write: bool = True) -> CopySpec:
        topic = self.link.topic
        self.link.east.grant(reader(writer, topic))
        if may_write:
            self.link.west.grant([writing(writer, topic)])
        return CopySpec(
            link=self.link.harness.name,
            writer=writer,
            source=self.link.east.connection(writer, "pass-east"),
            source_topic=topic,
            origin=Origin("east", self.link.source.described.id),
            destination=self.link.west.connection(writer, "pass-west"),
            destination_topic=topic,
            start={0: 2},
            max_record_bytes=1_000_000,
        )

    def produce(self, keys: list[bytes]) -> None:
        for key in keys:
            self.link.source.partitions[0].append(key)

    def copied(self) -> list[bytes]:
        records = self.link.destination.partitions[0].records
        return [records[at][0] for at in sorted(records)]

    def wait(self, condition: Callable[[], bool]) -> None:
        for _ in range(5):
            self.link.engine.move()
            if condition():
                return
        pytest.fail("it never came to be")
