"""Who pauses a copy, and when it goes on by itself, on a mesh with two clusters."""

import pytest

from mesh_events.intents import LinkPaused
from mesh_events.rows import LinkState
from projections.links import link_id
from tests.integration.governance.conftest import Scene
from tests.mesh_kit import Domain

pytestmark = pytest.mark.platform
CLUSTER = "west"


def until(scene: Scene, link: str, state: LinkState, paused_by: str | None) -> None:
    """The link is in the state, by whom it is paused."""
    scene.kit.wait_for(
        lambda image: (
            link in image.links
            and (image.links[link].state, image.links[link].paused_by) == (state, paused_by)
        ),
        f"{link} is {state}",
    )


def granted(scene: Scene, reader: Domain) -> None:
    application = reader.application("reads")
    request = reader.request(scene.product, application.name)
    scene.owner.grant(scene.product, request, active=False)


def test_a_pause_of_the_only_reader_ends_when_another_reader_is_granted(scene: Scene) -> None:
    kit, owner, link = scene.kit, scene.owner, link_id(scene.product, CLUSTER)
    first, second = (kit.register_domain(name, CLUSTER) for name in ("first", "second"))
    place = {"product": scene.product, "cluster": CLUSTER}
    granted(scene, first)
    until(scene, link, LinkState.ACTIVE, None)
    kit.accepted(first.say(LinkPaused, **place))
    until(scene, link, LinkState.PAUSED, first.name)

    granted(scene, second)
    until(scene, link, LinkState.ACTIVE, None)

    assert kit.code(first.say(LinkPaused, **place)) == "not_your_domain"
    kit.accepted(owner.say(LinkPaused, **place))
    until(scene, link, LinkState.PAUSED, owner.name)
    kit.accepted(kit.operator.emit(LinkPaused(meta=kit.operator.meta(), **place)))
    until(scene, link, LinkState.PAUSED, "mesh")
