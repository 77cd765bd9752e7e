"""A cluster that does not answer: what concerns the others goes on."""

import os
import signal
from collections.abc import Iterator

import pytest

from local_platform import PlatformSettings
from local_platform.layout import Layout
from local_platform.supervision.state import PlatformState
from mesh_events.intents import AccessGranted, ApplicationRegistered
from projections.access import State
from tests.mesh_kit import Domain, Mesh, fresh

pytestmark = pytest.mark.platform


@pytest.fixture
def owner(kit: Mesh) -> Domain:
    return kit.register_domain("owner")


@pytest.fixture
def hung_west(kit: Mesh, owner: Domain, settings: PlatformSettings) -> Iterator[str]:
    """West stands still, with work waiting for it: a check, a login and rights."""
    product, _ = owner.product()
    far = kit.register_domain("far", "west")
    request = far.request(product, far.application().name)
    board = PlatformState.load(Layout(settings.home).state)
    assert board is not None
    pid = next(one.pid for one in board.services if one.name == "kafka-west")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        late = far.say(ApplicationRegistered, application=f"{far.name}.{fresh('late')}")
        grant = owner.say(AccessGranted, product=product, request=request)
        kit.accepted(late)
        yield request
    finally:
        os.kill(pid, signal.SIGCONT)
    kit.accepted(grant)
    # waits for a login and rights there
    far.application("after")


def test_checks_logins_rights_and_revocations_elsewhere_go_on(
    kit: Mesh, owner: Domain, hung_west: str
) -> None:
    near = kit.register_domain("near")
    product, _ = owner.product()
    application = near.application()
    request = near.request(product, application.name)
    owner.grant(product, request)
    owner.revoke(product, request)

    waiting = kit.image().access.requests[hung_west]
    assert waiting.state is State.REQUESTED
    assert kit.image().access.requests[request].state is State.REVOKED
