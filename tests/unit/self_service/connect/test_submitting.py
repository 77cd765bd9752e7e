"""What becomes of a connector's password where its config is not said."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from mesh_events.connectors import ConnectorAdded
from mesh_events.errors import ConfigurationError, InfrastructureError, MeshError, RefusedError
from mesh_events.meta import Event, Meta
from self_service.cli.connect.submitting import submit_about
from self_service.cli.framework.options import SubmitOptions
from self_service.cli.mesh.context import Mesh
from tests import sample_history as story
from tests.memory_log import MemoryLog


class Unheard:
    """A mesh in which nothing can be said: it cannot be reached, or refuses what is said."""

    def __init__(self, *, reached: bool, error: MeshError) -> None:
        self.reached, self.error = reached, error

    def acting_as(self, domain: str | None) -> str | None:
        return domain

    def require_governor(self) -> None:
        """There is one."""

    @contextmanager
    def emitter(self, *_: object) -> Iterator["Unheard"]:
        """The reporter of a caller; see `Mesh`."""
        if not self.reached:
            raise self.error
        yield self

    def meta(self, **_: Any) -> Meta:
        return MemoryLog().make(ConnectorAdded, "east", **story.connector()).meta

    def emit(self, _: Event) -> None:
        """Append an intent; see `Emitter`."""
        raise self.error


@pytest.mark.parametrize(
    ("mesh", "withdrawn"),
    [
        (Unheard(reached=False, error=InfrastructureError("no Kafka", retriable=True)), [1]),
        (Unheard(reached=True, error=RefusedError("access_denied", "no right to write")), [1]),
        (Unheard(reached=True, error=ConfigurationError("a wrong login")), [1]),
        # it may be on the log
        (Unheard(reached=True, error=InfrastructureError("no answer", retriable=True)), []),
    ],
)
def test_a_password_is_withdrawn_where_its_config_is_not_on_the_log_for_certain(
    mesh: Unheard, withdrawn: list[int]
) -> None:
    found: list[int] = []
    config = story.connector()["config"]
    with pytest.raises(type(mesh.error)):
        submit_about(
            cast("Mesh", mesh),
            SubmitOptions(),
            story.CONNECTOR,
            ConnectorAdded,
            {"config": config},
            refused=lambda: found.append(1),
        )
    assert found == withdrawn
