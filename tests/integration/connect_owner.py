"""The domain of tests of connectors: they share it, and with it one Connect worker.

Those whose tables have the same names, and with them their topics, have a domain each.
"""

from pathlib import Path

import pytest

from local_platform import Endpoints
from local_platform.settings import PlatformSettings
from processors.connect.rest import Connect
from tests.integration.test_cli import Party, Sdm, register
from tests.mesh_fixtures import connect_worker

_OWNERS: dict[tuple[Path, str], Party] = {}


def shared(sdm: Sdm, settings: PlatformSettings, cluster: str) -> Party:
    """A domain of a cluster that all tests of this process share."""
    key = settings.home, cluster
    if key not in _OWNERS:
        _OWNERS[key] = register(sdm, cluster)
    return _OWNERS[key]


@pytest.fixture
def owner(sdm: Sdm, settings: PlatformSettings) -> Party:
    return shared(sdm, settings, "east")


@pytest.fixture
def consumer(sdm: Sdm, settings: PlatformSettings) -> Party:
    return shared(sdm, settings, "west")


def as_administrator(mesh: Endpoints) -> dict[str, str]:
    """Overrides by which a connector's own clients log in."""
    login = {
        one: text for one, text in mesh.administration("east").java().items() if "ssl." not in one
    }
    clients = ("producer", "consumer", "admin")
    return {f"{client}.override.{one}": text for client in clients for one, text in login.items()}


def topics_of(sdm: Sdm, domain: str) -> list[str]:
    """The topics of a domain; one's name may stand within that of a connector's heartbeats."""
    return [one["topic"] for one in sdm("topic", "list", "-d", domain).document]


def worker_of(mesh: Endpoints, domain: str) -> Connect:
    """A domain's own Connect worker, started if it does not run."""
    return Connect(*connect_worker(mesh, domain))
