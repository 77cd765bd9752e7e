"""A registry that answers late or not at all, for the worker that governs meanwhile."""

import time
from urllib.parse import urlsplit

from tests.faults.run.fault import Fault
from tests.faults.run.judge import all_is_right
from tests.faults.run.proxy import Proxy
from tests.faults.run.stage import Stage
from tests.faults.run.takeover import TAKEOVER_S, awake, sleeping

DELAY_S = 5.0
CHECK_S = 60
"""So long an intent waits for its checks."""


def late_registry(stage: Stage) -> float:
    """Known schemas go on at once, a publication waits; then nobody answers; then all is well."""
    url = urlsplit(stage.kit.endpoints.registry_url)
    assert url.port is not None
    with Proxy(url.port) as proxy, sleeping(stage) as before:
        proxied = url._replace(netloc=f"127.0.0.1:{proxy.port}").geturl()
        worker = stage.worker(SDM_REGISTRY_URL=proxied)
        worker.wait_ready(TAKEOVER_S)
        stage.pulse(time.monotonic(), 30)

        proxy.delay_s, asked = DELAY_S, proxy.connections
        slow = publish(stage)
        stage.pulse(time.monotonic(), 10)
        stage.kit.decided(slow, CHECK_S + 10)
        assert stage.kit.code(slow) == "", "a slow registry is no reason to refuse"

        proxy.delay_s = 0.0
        proxy.cut()
        cut = publish(stage)
        stage.pulse(time.monotonic(), 10)
        assert proxy.connections > asked, "the worker never asked the registry"
        assert cut in stage.kit.image().intents.undecided, "decided without the registry"
        proxy.mend()
        began = time.monotonic()
        stage.kit.decided(cut, CHECK_S)
        assert stage.kit.code(cut) == "", "a registry that is back is no reason to refuse"
        recovery = time.monotonic() - began
        worker.stop()
    awake(stage, before)
    return recovery


def publish(stage: Stage) -> int:
    """Offset of a publication, which needs the registry to be decided."""
    topic = stage.new_topic("waiting")
    return stage.owner.publish(topic, topic).offset


FAULTS = (
    Fault(
        "registry-slow",
        f"the registry answers {DELAY_S:g} s late, then resets connections",
        late_registry,
        all_is_right,
        240,
    ),
)
