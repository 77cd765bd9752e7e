"""What a real worker serves at /metrics, and to whom."""

import psutil
import pytest

from mesh_events.intents import ApplicationRegistered
from tests.integration.clock.conftest import Shop
from tests.mesh_kit import eventually

pytestmark = [pytest.mark.platform, pytest.mark.slow]


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
