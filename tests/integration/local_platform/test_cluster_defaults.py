"""Topics without settings of their own, on a cluster whose defaults are not Kafka's."""

import shutil
import time
from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from local_platform import LocalPlatform
from mesh_events.kafka.connection import Connection
from processors.clusters.kafka import KafkaAdmin, Topic
from processors.controllers.flows.copy_settings import copied_settings
from processors.controllers.flows.elections import require_clean
from spark_streams.errors import CopyError
from tests.conftest import new_settings, start
from tests.integration.local_platform.clients import wait_until

pytestmark = pytest.mark.platform

KAFKAS = {
    "cleanup.policy": "delete",
    "delete.retention.ms": "86400000",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
}
DEFAULTS = {
    "log.cleanup.policy": "compact",
    "log.cleaner.delete.retention.ms": "172800000",
    "log.retention.bytes": "1000",
    "log.retention.ms": "3600000",
    "unclean.leader.election.enable": "true",
}


@pytest.fixture(scope="module")
def login() -> Iterator[Connection]:
    """The super user of a broker of this module's own."""
    settings = new_settings()
    platform = LocalPlatform(settings, ["kafka-west"])
    yield start(platform).administration("west")
    platform.down()
    shutil.rmtree(settings.home)


def set_defaults(login: Connection, defaults: Mapping[str, str | None]) -> None:
    entries = [
        ConfigEntry(
            name,
            value,
            incremental_operation=AlterConfigOpType.SET if value else AlterConfigOpType.DELETE,
        )
        for name, value in defaults.items()
    ]
    broker = ConfigResource(ResourceType.BROKER, "1", incremental_configs=entries)
    client = AdminClient(login.config())
    client.incremental_alter_configs([broker])[broker].result(20)


def of(admin: KafkaAdmin, name: str, **told: str) -> Topic:
    """The topic, once it tells these settings."""

    def is_told() -> bool:
        found = admin.topic(name)
        return found is not None and told.items() <= found.config.items()

    wait_until(is_told, f"{name} has {told}", 30)
    found = admin.topic(name)
    assert found is not None
    return found


def test_a_copy_keeps_records_as_its_source_does_whatever_both_clusters_defaults_are(
    login: Connection,
) -> None:
    admin, name = KafkaAdmin("west", login), f"west.{time.time_ns()}"
    admin.create_topic(name, 1, {})
    plain = of(admin, name, **KAFKAS)
    set_defaults(login, DEFAULTS)
    try:
        source = of(admin, name, **{"retention.ms": "3600000", "cleanup.policy": "compact"})
        settings = {
            "cleanup.policy": "compact",
            "delete.retention.ms": "172800000",
            "retention.bytes": "-1",
            "retention.ms": "3600000",
        }
        assert settings.items() <= copied_settings(source.config).items()
        with pytest.raises(CopyError) as refused:
            require_clean(source, "west", "begin anew", "go on")
        assert refused.value.code == "source_unclean"
        # a copy of what was there before: this cluster's defaults are not its own
        admin.create_topic(f"{name}.copy", 1, copied_settings(plain.config))
        copy = of(admin, f"{name}.copy", **copied_settings(plain.config))
        assert KAFKAS.items() <= copy.config.items()
    finally:
        set_defaults(login, dict.fromkeys(DEFAULTS))
