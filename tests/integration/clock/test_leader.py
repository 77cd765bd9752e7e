"""The log's leader changes between a broker with a right clock and one with a wrong clock."""

from datetime import UTC, datetime

import pytest

from tests.integration.clock.brokers import HOUR, MINUTE
from tests.integration.clock.conftest import Shop

pytestmark = [pytest.mark.platform, pytest.mark.slow, pytest.mark.long]
RIGHT, WRONG = 1, 2


def now() -> str:
    return datetime.now(UTC).isoformat()


@pytest.mark.parametrize("off", [10 * MINUTE, 26 * HOUR, -HOUR])
def test_a_leader_with_a_wrong_clock_changes_nothing(shop: Shop, off: int) -> None:
    mesh, kit, owner = shop.mesh, shop.kit, shop.owner
    mesh.move_leader(RIGHT)
    mesh.clock(off, WRONG)
    kit.accepted(shop.update())
    shop.freeze()
    before = now()

    mesh.move_leader(WRONG)
    kit.accepted(shop.update())
    led, _ = owner.product("led")
    assert kit.image().clocks_disagree
    assert shop.is_frozen()
    middle = now()
    mesh.govern()
    restarted, _ = owner.product("restarted")
    assert shop.is_frozen()

    mesh.move_leader(RIGHT)
    kit.accepted(shop.update())
    assert not kit.image().clocks_disagree
    assert shop.is_frozen(), "the freeze ended before its time"
    shop.thaw()
    assert not shop.is_frozen()
    assert isinstance(shop.kept.read(shop.topic), list), "a grant ended that nobody revoked"
    assert shop.products("--as-of", before) == {shop.product}
    assert shop.products("--as-of", middle) == {shop.product, led}
    assert shop.products() == {shop.product, led, restarted}
    mesh.sdm("audit", "verify")
