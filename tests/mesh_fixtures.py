"""Fixtures over the run's mesh, for the folders whose tests speak on its log."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from local_platform import Endpoints, LocalPlatform, PlatformSettings
from local_platform.layout import Layout
from local_platform.state import PlatformState
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


@pytest.fixture(scope="session")
def kit(mesh: Endpoints, settings: PlatformSettings) -> Iterator[Mesh]:
    """The run's mesh, ready to be spoken to."""
    found = Mesh(mesh, settings.home)
    yield found
    found.close()


def pid_of(settings: PlatformSettings, service: str) -> int | None:
    """The process that is a service of a mesh now; None while there is none."""
    state = PlatformState.load(Layout(settings.home).state)
    assert state is not None, f"nothing was started at {settings.home}"
    return next((one.pid for one in state.services if one.name == service), None)


@pytest.fixture(scope="session")
def governor_pid(mesh: Endpoints, settings: PlatformSettings) -> Callable[[], int | None]:
    """Tells the process that governs now."""
    return lambda: pid_of(settings, "governor")
