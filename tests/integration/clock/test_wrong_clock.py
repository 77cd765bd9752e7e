"""The clock of the broker that leads the log is wrong for a while; what its worker serves."""

import time
from datetime import UTC, datetime

import psutil
import pytest

from mesh_events.intents import AccessRevoked, ApplicationRegistered
from projections.access import State
from projections.clocks import CLOCKS_DISAGREE
from tests.integration.clock.brokers import HOUR, MINUTE, clocked_mesh
from tests.integration.clock.conftest import Shop
from tests.mesh_kit import eventually

pytestmark = [pytest.mark.platform, pytest.mark.slow]
OTHERS = [pytest.param(off, marks=pytest.mark.long) for off in (10 * MINUTE, -HOUR)]
NEAR_S = 30
"""How exactly an append time follows its broker's clock, with the time of the test itself."""


def now() -> str:
    return datetime.now(UTC).isoformat()


@pytest.mark.parametrize("off", [26 * HOUR, *OTHERS])
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


@pytest.mark.long
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
        # by the clock of before, the owner has created topics a moment from now: Kafka has it wait
        mesh.kit.register_domain("later").product()
        assert shop.is_frozen(), "the freeze ended before its time"
        shop.thaw()
        assert not shop.is_frozen()
        assert isinstance(shop.kept.read(shop.topic), list), "a grant ended that nobody revoked"
        mesh.sdm("audit", "verify")


def test_a_worker_serves_what_it_decides_and_fails(shop: Shop) -> None:
    mesh, kit = shop.mesh, shop.kit
    before = mesh.metrics()
    kit.accepted(shop.update())
    foreign = shop.owner.say(ApplicationRegistered, application="west.foreign")
    assert kit.code(foreign) == "not_your_domain"

    # a decision is read here as soon as it stands on the log, and counted once it is folded
    measured = ("mesh_decision_latency_seconds_count", ())
    eventually(lambda: mesh.metrics()[measured] - before[measured] >= 2, "both are counted")
    after = mesh.metrics()
    assert after[measured] - before[measured] == 2
    refused = ("mesh_failures_total", ("IntentRejected",))
    assert after[refused] - before[refused] == 1
    assert after["mesh_undecided_intents", ()] == 0
    assert after["mesh_governor", ()] == 1
    assert after["mesh_clocks_disagree", ()] == 0
    assert abs(after["mesh_clock_skew_seconds", ("broker",)]) < 60
    eventually(lambda: mesh.metrics()["mesh_fold_lag_records", ()] == 0, "all is folded")


def test_a_worker_listens_on_loopback_alone(shop: Shop) -> None:
    worker = shop.mesh.workers[-1]
    connections = psutil.Process(worker.process.pid).net_connections("tcp")
    listening = {one.laddr for one in connections if one.status == psutil.CONN_LISTEN}
    assert listening == {("127.0.0.1", worker.port)}
