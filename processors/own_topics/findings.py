"""How the mesh's own topics differ on a cluster from what they are to be. Pure."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from processors.own_topics.wanted import (
    KEPT_FOR_EVER,
    MIN_INSYNC,
    REPLICATION,
    TOPICS,
    UNCLEAN,
    Durability,
)


class Code(StrEnum):
    """What is wrong with a topic, see docs/reference/codes.md."""

    MISSING = "own_topic_missing"
    NOT_DURABLE = "own_topic_not_durable"
    SETTINGS_DIFFER = "own_topic_settings_differ"


@dataclass(frozen=True, slots=True)
class Described:
    """A topic as a cluster has it.

    Args:
        replicas: of the partition that has the fewest.
        config: setting -> value, also of those that are the cluster's defaults.
    """

    replicas: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference; a worker refuses to start if it `refuses`."""

    code: Code
    topic: str
    detail: str
    next: str
    refuses: bool = True

    def __str__(self) -> str:
        return f"{self.topic}: {self.detail} ({self.code}): {self.next}"


def findings(wanted: Durability, found: Mapping[str, Described]) -> Iterator[Finding]:
    """What differs: topic by topic, the durability first.

    A topic that is more durable than it is to be is no finding. Other settings of a topic that the
    log does not depend on are told and left: an operator may have a reason.
    """
    for topic in TOPICS:
        if topic not in found:
            yield Finding(
                Code.MISSING,
                topic,
                "the topic does not exist",
                "restore it, or begin an empty mesh: `python -m processors.bootstrap`",
            )
            continue
        yield from _durability(topic, wanted, found[topic])
        yield from _settings(topic, found[topic].config)


def _durability(topic: str, wanted: Durability, found: Described) -> Iterator[Finding]:
    def finding(setting: str, actual: str, least: int | str, step: str) -> Finding:
        detail = f"{setting} is {actual}, it is to be {least}"
        return Finding(Code.NOT_DURABLE, topic, detail, step)

    if found.replicas < wanted.replicas:
        step = "move it to more brokers with kafka-reassign-partitions"
        yield finding(REPLICATION, str(found.replicas), wanted.replicas, step)
    insync = found.config.get(MIN_INSYNC, "1")
    if int(insync) < wanted.min_insync:
        step = _altering(topic, MIN_INSYNC, str(wanted.min_insync))
        yield finding(MIN_INSYNC, insync, wanted.min_insync, step)
    if found.config.get(UNCLEAN, "false") != "false":
        yield finding(UNCLEAN, found.config[UNCLEAN], "false", _altering(topic, UNCLEAN, "false"))


def _settings(topic: str, config: Mapping[str, str]) -> Iterator[Finding]:
    for setting, value in TOPICS[topic].items():
        actual = config.get(setting)
        if actual != value:
            yield Finding(
                Code.SETTINGS_DIFFER,
                topic,
                f"{setting} is {actual}, it is to be {value}",
                f"look what was lost by it, then {_altering(topic, setting, value)}",
                refuses=topic in KEPT_FOR_EVER,
            )


def _altering(topic: str, setting: str, value: str) -> str:
    options = ["--entity-type", "topics", "--entity-name", topic]
    return shlex.join(["kafka-configs", "--alter", *options, "--add-config", f"{setting}={value}"])
