"""Fixtures over the run's mesh, for the folders whose tests speak on its log."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from local_platform import Endpoints, LocalPlatform, PlatformSettings
from local_platform.domain_servers import CONNECT, SPARK
from local_platform.layout import Layout
from local_platform.ports import OFFSETS
from local_platform.supervision.state import PlatformState, ServiceStatus
from mesh_events.references import resolve
from tests.conftest import new_settings, start
from tests.mesh_kit import Mesh


@contextmanager
def mesh_of_its_own(services: Sequence[str], **changes: Any) -> Iterator[Mesh]:
    """A founded mesh of one module alone, with these services and settings."""
    settings = new_settings().model_copy(update=changes)
    platform = LocalPlatform(settings, services)
    try:
        found = Mesh(start(platform), settings.home)
        yield found
        found.close()
    finally:
        platform.down()
        shutil.rmtree(settings.home)


_servers: dict[tuple[Path, str], tuple[str, str]] = {}


def home_of(endpoints: Endpoints) -> Path:
    """Where a running mesh keeps its files."""
    return Path(endpoints.registry_password.removeprefix("file:")).parents[2]


def domain_server(endpoints: Endpoints, domain: str) -> tuple[str, str]:
    """Where a domain's Spark server of a running mesh answers, and its token."""
    home = home_of(endpoints)
    if (home, domain) not in _servers:
        remote, token = _platform(endpoints).domain_server(domain)
        _servers[home, domain] = remote, resolve(token)
    return _servers[home, domain]


TESTERS = "testers"
"""A domain that no mesh has; its Connect worker is for what tests ask of Connect itself."""


def connect_worker(endpoints: Endpoints, domain: str = TESTERS) -> tuple[str, tuple[str, str]]:
    """Where a domain's Connect worker answers, and the login; it is started if it does not run."""
    url, user, password = _platform(endpoints).connect_worker(domain)
    return url, (user, resolve(password))


def _platform(endpoints: Endpoints) -> LocalPlatform:
    base = endpoints.postgres_port - OFFSETS["postgres"]
    return LocalPlatform(PlatformSettings(home=home_of(endpoints), port_base=base))


def spark_service(domain: str) -> str:
    """The service that is a domain's Spark server."""
    return f"{SPARK.prefix}{domain}"


def connect_service(domain: str = TESTERS) -> str:
    """The service that is a domain's Connect worker."""
    return f"{CONNECT.prefix}{domain}"


@pytest.fixture(scope="session")
def kit(mesh: Endpoints, settings: PlatformSettings) -> Iterator[Mesh]:
    """The run's mesh, ready to be spoken to."""
    found = Mesh(mesh, settings.home)
    yield found
    found.close()


def pid_of(settings: PlatformSettings, service: str) -> int | None:
    """The process that is a service of a mesh now; None while there is none."""
    found = _status_of(settings, service)
    return None if found is None else found.pid


def restarts_of(settings: PlatformSettings, service: str) -> int:
    """How often a service of a mesh died and was started again."""
    found = _status_of(settings, service)
    return 0 if found is None else found.restarts


def _status_of(settings: PlatformSettings, service: str) -> ServiceStatus | None:
    state = PlatformState.load(Layout(settings.home).state)
    assert state is not None, f"nothing was started at {settings.home}"
    return next((one for one in state.services if one.name == service), None)


@pytest.fixture(scope="session")
def governor_pid(mesh: Endpoints, settings: PlatformSettings) -> Callable[[], int | None]:
    """Tells the process that governs now."""
    return lambda: pid_of(settings, "governor")
