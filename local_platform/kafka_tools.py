"""Kafka's own command line tools, out of the same jars as the brokers."""

from collections.abc import Sequence
from pathlib import Path

from local_platform.jars.java import java, log4j_options, small_jvm
from local_platform.services.kafka import class_archive, class_path
from local_platform.site import Site
from mesh_events.errors import ConfigurationError

HEAP_MB = 256
TOOLS = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "configs": "kafka.admin.ConfigCommand",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
}
"""What follows `kafka-` in the name of Kafka's script -> its main class."""


def command(
    site: Site, tool: str, servers: str, config: Path, arguments: Sequence[str]
) -> list[str]:
    """The process that runs a tool against a cluster, logged in as the file `config` says.

    Raises ConfigurationError where the jars were not fetched.
    """
    jars = site.jars.of("kafka")
    if not all(site.jars.path(jar).exists() for jar in jars):
        raise ConfigurationError(f"Kafka's jars are not all in {site.cache}: fetch them, `sdm up`")
    options = [*class_archive(site).options(), *small_jvm(), *log4j_options(site.layout.conf)]
    place = ("--bootstrap-server", servers, "--command-config", str(config))
    return [*java(TOOLS[tool], HEAP_MB, class_path(site), options), *place, *arguments]
