"""The clock of the broker that leads the log is wrong for a while."""

import time
from datetime import UTC, datetime

import pytest

from mesh_events.intents import AccessRevoked
from projections.access import State
from projections.clocks import CLOCKS_DISAGREE
from tests.integration.clock.brokers import HOUR, MINUTE, clocked_mesh
from tests.integration.clock.conftest import Shop

pytestmark = [pytest.mark.platform, pytest.mark.slow]
NEAR_S = 30
"""How exactly an append time follows its broker's clock, with the time of the test itself."""


def now() -> str:
    return datetime.now(UTC).isoformat()


@pytest.mark.sample(1)
@pytest.mark.parametrize("off", [26 * HOUR, 10 * MINUTE, -HOUR])
def test_a_mesh_goes_on_as_with_a_right_clock(shop: Shop, off: int) -> None:
    mesh, kit, owner, near = shop.mesh, shop.kit, shop.owner, shop.near
    far = kit.register_domain("far", "west")
    request = far.request(shop.product, far.application("reader").name)
    owner.grant(shop.product, request)
    link = f"{shop.product}@west"
    before = now()

    mesh.clock(off, mesh.leader)
    first = shop.update()
    kit.accepted(first)
    appended = kit.records[first.offset].time / 1000
    assert appended - time.time() == pytest.approx(off / 1000, abs=NEAR_S), "the append time"
    # what needs a check does not run out of time, whoever else waits
    during, _ = owner.product("during")
    application = near.application("moment")
    passing = near.request(shop.product, application.name)
    owner.grant(shop.product, passing)
    assert isinstance(application.read(shop.topic), list), "the grant is not applied"
    owner.revoke(shop.product, passing)
    assert isinstance(application.read(shop.topic), str), "the grant is not withdrawn"
    shop.freeze()
    assert shop.is_frozen()
    skew = mesh.metrics()["mesh_clock_skew_seconds", ("broker",)]
    assert skew == pytest.approx(off / 1000, abs=NEAR_S)
    assert mesh.finding() == CLOCKS_DISAGREE
    middle = now()

    mesh.govern()
    assert shop.is_frozen()
    kit.accepted(
        owner.say(AccessRevoked, product=shop.product, request=request, reason="it is over")
    )
    kit.wait_for(lambda image: image.links[link].is_over, f"{link} has ended", 120)
    restarted, _ = owner.product("restarted")

    mesh.clock(0)
    kit.accepted(shop.update())
    assert shop.is_frozen(), "the freeze ended before its time"
    shop.thaw()
    assert not shop.is_frozen()
    assert mesh.finding() is None
    assert kit.image().access.requests[shop.kept_request].state is State.ACTIVE
    assert isinstance(shop.kept.read(shop.topic), list), "a grant ended that nobody revoked"

    assert shop.products("--as-of", before) == {shop.product}
    assert shop.products("--as-of", middle) == {shop.product, during}
    assert shop.products("--as-of", now()) == {shop.product, during, restarted}
    mesh.sdm("audit", "verify")


@pytest.mark.sample(1)
@pytest.mark.parametrize("off", [-HOUR, 10 * MINUTE, 26 * HOUR])
def test_a_mesh_that_is_founded_with_a_wrong_clock_works_and_goes_on_with_the_right_one(
    off: int,
) -> None:
    with clocked_mesh(off_ms=off) as mesh:
        mesh.govern()
        shop = Shop(mesh)
        shop.freeze()
        assert shop.is_frozen()

        mesh.clock(0)
        mesh.kit.accepted(shop.update())
        assert shop.is_frozen(), "the freeze ended before its time"
        mesh.govern()
        shop.owner.product("later")
        assert shop.is_frozen(), "the freeze ended before its time"
        shop.thaw()
        assert not shop.is_frozen()
        assert isinstance(shop.kept.read(shop.topic), list), "a grant ended that nobody revoked"
        mesh.sdm("audit", "verify")
