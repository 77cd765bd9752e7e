"""The mesh's own topics on real brokers: as durable as they are to be, or nothing starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection

from mesh_events.errors import ConfigurationError
from processors.own_topics.described import described, verify
from processors.own_topics.wanted import MIN_INSYNC, TOPICS, UNCLEAN, Durability
from tests.mesh_kit import Mesh

REPOSITORY = Path(__file__).parents[3]
SINGLE, THREE = Durability(1, 1), Durability(3, 2)


def started(kit: Mesh, module: str) -> subprocess.CompletedProcess[str]:
    """A process of the mesh that is to have three brokers, where there is one."""
    durable = {"SDM_REPLICATION_FACTOR": "3", "SDM_MIN_INSYNC_REPLICAS": "2"}
    return subprocess.run(
        [sys.executable, "-m", module],
        cwd=REPOSITORY,
        env={**os.environ, "SDM_HOME": str(kit.home), **durable},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_topics_were_created_with_the_settings_that_make_them_durable(kit: Mesh) -> None:
    found = described(kit.login("mesh.governor"))
    assert found.keys() == TOPICS.keys()
    for name, topic in found.items():
        config = {setting: topic.config[setting] for setting in SINGLE.config(name)}
        assert (topic.replicas, config) == (1, SINGLE.config(name))
        assert {MIN_INSYNC, UNCLEAN} <= config.keys()
    # and not because the cluster's defaults are so
    admin = kit.admin()
    topics = admin.describe_topics(TopicCollection(list(TOPICS)))
    assert all(len(one.result(15).partitions) == 1 for one in topics.values())


def test_the_governors_login_suffices_to_verify_them(kit: Mesh) -> None:
    login = kit.login("mesh.governor")
    verify(login, SINGLE)
    with pytest.raises(ConfigurationError, match=r"mesh\.governance: .*own_topic_not_durable"):
        verify(login, THREE)


def test_a_worker_refuses_to_start_over_topics_that_are_less_durable(kit: Mesh) -> None:
    done = started(kit, "processors")
    assert done.returncode == 1
    assert "the worker cannot start: mesh.governance: replication.factor is 1" in done.stderr
    assert "kafka-reassign-partitions" in done.stderr


def test_a_mesh_is_not_founded_on_fewer_brokers_than_are_to_hold_its_log(kit: Mesh) -> None:
    done = started(kit, "processors.bootstrap")
    assert done.returncode == 1
    assert "cluster east has 1 brokers" in done.stderr
    assert "SDM_REPLICATION_FACTOR" in done.stderr
