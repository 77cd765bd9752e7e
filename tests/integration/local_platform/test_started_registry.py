"""What a registry answers that was just started, and has not read the schemas that it has."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from local_platform import Endpoints, LocalPlatform
from mesh_events.references import resolve
from tests.conftest import new_settings, start
from tests.kafka_client import fresh

pytestmark = pytest.mark.platform

SCHEMAS = 200
"""They are read for some tenths of a second after the first request is served."""
KNOWN, UNAVAILABLE = 200, 503


@pytest.fixture
def alone() -> Iterator[tuple[Endpoints, LocalPlatform]]:
    """A registry of this test's own."""
    settings = new_settings()
    platform = LocalPlatform(settings, ("kafka-east", "registry"))
    try:
        yield start(platform), platform
    finally:
        platform.down()
        shutil.rmtree(settings.home)


def register(endpoints: Endpoints) -> int:
    """The id of the last of many schemas."""
    login = (endpoints.registry_user, resolve(endpoints.registry_password))
    subject = f"{endpoints.registry_url}/subjects/{fresh('started')}"
    with requests.Session() as session:
        for size in range(1, SCHEMAS + 1):
            schema = f'{{"type": "fixed", "name": "f", "size": {size}}}'
            answer = session.post(
                f"{subject}-{size}/versions", json={"schema": schema}, auth=login, timeout=60
            )
            answer.raise_for_status()
    return int(answer.json()["id"])


@contextmanager
def asked(url: str) -> Iterator[list[int]]:
    """The status of each answer, while the block runs."""
    found: list[int] = []
    ends = threading.Event()

    def ask() -> None:
        while not ends.is_set():
            try:
                found.append(requests.get(url, timeout=60).status_code)
            except requests.ConnectionError:
                # none runs
                ends.wait(0.01)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield found
    finally:
        ends.set()
        asking.join()


def test_a_registry_knows_its_schemas_from_its_first_answer_on(
    alone: tuple[Endpoints, LocalPlatform],
) -> None:
    endpoints, platform = alone
    url = f"{endpoints.registry_url}/schemas/ids/{register(endpoints)}"
    with asked(url) as found:
        platform.restart("registry", timeout_s=240)
        assert requests.get(url, timeout=60).status_code == KNOWN
    assert UNAVAILABLE in found
    assert set(found) == {KNOWN, UNAVAILABLE}
