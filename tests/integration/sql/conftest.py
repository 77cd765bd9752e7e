"""A session on the run's Spark Connect server, as a statement's keeper has one."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from local_platform import Endpoints
from mesh_events.references import resolve
from spark_streams.session import ConnectSession


@pytest.fixture(scope="package")
def spark(platform: Endpoints) -> Iterator[Any]:
    token = platform.spark_token
    connected = ConnectSession(platform.spark_remote, token and resolve(token), uuid.uuid4().hex)
    session = connected.call("opening a session", lambda found: found)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.ansi.enabled", "false")
    # a batch from Python is to go through tasks, as a stream does
    local = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
    session.conf.set("spark.sql.optimizer.excludedRules", local)
    yield session
    connected.close()
