"""The administration of a real Kafka cluster, by the contract."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from local_platform import Endpoints
from mesh_events.kafka.connection import Connection
from processors.clusters.kafka import KafkaAdmin
from processors.clusters.rights import Acl
from spark_streams.log import KafkaLog
from tests.kafka_acls import made, unmade
from tests.links.cluster_contract import ClusterContract
from tests.links.real import until


class TestKafkaAdmin(ClusterContract):
    @pytest.fixture(autouse=True)
    def _world(self, platform: Endpoints) -> Iterator[None]:
        self.kafka = KafkaAdmin("east", platform.administration("east"))
        self.admin, self.topic = self.kafka, f"contract.{uuid.uuid4().hex[:10]}"
        self.made: list[Acl] = []
        yield
        for acl in self.made:
            unmade(self.kafka.login, acl)
        self.admin.withdraw(self.admin.rights(topic=self.topic))
        self.admin.delete_topic(self.topic)
        self.admin.retire_login(f"app.{self.topic}")

    def test_what_a_transaction_left_open_can_be_committed_no_more(self) -> None:
        self.admin.create_topic(self.topic, 1, {})
        self.wait(lambda: self.admin.topic(self.topic) is not None)
        name = f"{self.topic}.writer"
        zombie = Producer(self.kafka.login.config(transactional_id=name))
        zombie.init_transactions()
        zombie.begin_transaction()
        zombie.produce(self.topic, b"half")
        zombie.flush(10)
        self.admin.end_transactions(name)
        with pytest.raises(KafkaException, match="fenced"):
            zombie.commit_transaction(10)
        self.admin.end_transactions(name)
        log = KafkaLog(self.kafka.login, committed=True)
        bounds = log.bounds(self.topic, [0])
        # nothing is open, and nothing was committed
        assert bounds == KafkaLog(self.kafka.login).bounds(self.topic, [0])
        assert log.last(self.topic, bounds) == {}

    def may_log_in(self, connection: Connection) -> bool:
        try:
            AdminClient(connection.config()).list_topics(self.topic, timeout=2)
        except KafkaException:
            return False
        return True

    def logins(self) -> set[str]:
        admin = AdminClient(self.kafka.login.config())
        return set(admin.describe_user_scram_credentials(request_timeout=10).result(11))

    def make(self, acl: Acl) -> None:
        self.made.append(acl)
        made(self.kafka.login, acl)

    def wait(self, condition: Callable[[], bool]) -> None:
        until(condition)
