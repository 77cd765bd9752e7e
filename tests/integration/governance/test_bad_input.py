"""Whatever is written to the log: no effect, one decision with a code, and life goes on."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mesh_events import topics
from mesh_events.decisions import IntentQuarantined
from mesh_events.intents import ProductUpdated
from projections.image import Image
from tests.integration.governance import bad_bytes, bad_moments, bad_signers
from tests.integration.governance.cases import CASES
from tests.integration.governance.conftest import Scene
from tests.mesh_kit import Mesh, fresh

FILLED = (bad_bytes, bad_moments, bad_signers)
"""Importing them fills the table of cases."""


def established(image: Image) -> tuple[Any, ...]:
    """All that a decision may change."""
    return (
        image.identity,
        image.catalog,
        image.access,
        image.links,
        image.schemas,
        image.epoch,
        image.touched,
    )


def effect_free(kit: Mesh, offset: int) -> bool:
    """Whether the record at `offset` left everything as it was."""
    before = established(kit.before(offset))[:-1]
    return established(kit.images[offset]) == (*before, ())


def copied(kit: Mesh, offset: int) -> dict[str, bytes]:
    """The headers of the people's copy, waited for."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for message in kit.news(topics.QUARANTINE):
            if message.key() == str(offset).encode():
                return dict(message.headers())
    raise AssertionError(f"{topics.QUARANTINE} has no copy of offset {offset}")


@pytest.mark.parametrize("name", CASES)
def test_has_no_effect_one_decision_and_stops_nobody(
    name: str, scene: Scene, governor_pid: Callable[[], int | None]
) -> None:
    code, write = CASES[name]
    kit, pid = scene.kit, governor_pid()
    kit.news(topics.QUARANTINE)
    kit.new_rows()

    offset = write(scene)
    assert kit.code(offset) == code
    later = scene.owner.say(ProductUpdated, product=scene.product, tags=[fresh("later")])
    kit.accepted(later)

    assert len(kit.decisions(offset)) == 1
    decision = next(
        found for found, entry in kit.entries.items() if entry.event is kit.decisions(offset)[0]
    )
    assert effect_free(kit, offset)
    assert effect_free(kit, decision)
    assert offset < decision < kit.image().catalog[scene.product].changed
    assert not [row for row in kit.new_rows() if row.as_of_offset in (offset, decision)]
    if isinstance(kit.decisions(offset)[0], IntentQuarantined):
        assert copied(kit, offset)["code"] == code.encode()
    assert governor_pid() == pid


def test_five_mebibytes_are_refused_by_kafka_itself(scene: Scene) -> None:
    with pytest.raises(KafkaException) as refused:
        scene.stranger.raw.write(b"\x00" * (5 * 1024 * 1024))

    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
