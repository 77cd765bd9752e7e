"""A domain's own Spark Connect server, and a session there, as a statement's controller has one."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from local_platform import Endpoints, LocalPlatform, PlatformSettings
from mesh_events.references import resolve
from spark_streams.jvm import register
from spark_streams.session import ConnectSession
from spark_streams.sql.running.work import SETTINGS


@pytest.fixture(scope="session")
def server(platform: Endpoints, settings: PlatformSettings) -> tuple[str, str]:
    """Where a domain's own server answers, and its token."""
    del platform
    remote, token = LocalPlatform(settings).domain_server("sql")
    return remote, resolve(token)


@pytest.fixture(scope="package")
def spark(server: tuple[str, str]) -> Iterator[Any]:
    connected = ConnectSession(*server, uuid.uuid4().hex)
    session = connected.call("opening a session", lambda found: found)
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    # a batch from Python is to go through tasks, as a stream does
    local = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
    session.conf.set("spark.sql.optimizer.excludedRules", local)
    register(session)
    yield session
    connected.close()
