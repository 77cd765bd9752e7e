"""What `sdm access readers` shows of the readers of a product."""

from types import SimpleNamespace
from typing import Any

import pytest

from mesh_events.intents import (
    AccessRevoked,
    DomainQuarantined,
    DomainReleased,
    LinkDeleted,
    OnRevoke,
)
from self_service.cli.access import explanation
from self_service.cli.access.readers import COLUMNS, detail
from self_service.cli.framework.exits import NotFoundError
from tests import sample_history as story
from tests.memory_log import MemoryLog


def test_each_reader_is_shown_with_its_right_and_times() -> None:
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    story.settle(log)
    shown = detail(log.image, story.PRODUCT)
    items = {one["principal"]: one for one in shown.parts["readers"].items}
    assert all(set(COLUMNS) <= set(one) for one in items.values())
    west = items["west.app"]
    access = log.image.access.open_for(story.PRODUCT, "west.app")
    assert access is not None
    assert west["right"] == f"grant {access.offset}"
    assert (west["cluster"], west["entitled"], west["enforced"]) == ("west", True, True)
    assert west["enforced_periods"][0]["to"] is None
    assert west["entitled_from"] < west["enforced_periods"][0]["from"]
    assert items["east"]["right"] == "topics of east"
    assert "admin on east, admin on west" in shown.fields["administrators"]


def test_a_product_that_is_not_there_is_told() -> None:
    with pytest.raises(NotFoundError, match=r"east\.nothing"):
        detail(MemoryLog().image, "east.nothing")


def test_who_administers_a_cluster_is_told_as_long_as_a_copy_lies_there() -> None:
    log = MemoryLog()
    story.published(log)
    asked = story.granted(log, on_revoke=OnRevoke.RETAIN)
    story.settle(log)
    story.answer(log, AccessRevoked, asked)
    story.settle(log)
    shown = detail(log.image, story.PRODUCT)
    assert "west" not in {one["cluster"] for one in shown.parts["readers"].items}
    assert "admin on east, admin on west" in shown.fields["administrators"]


def test_explain_says_entitled_of_whom_readers_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of a domain in quarantine, nor after somebody deleted the link."""
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    story.settle(log)
    mesh: Any = SimpleNamespace(image=lambda _: log.image)
    monkeypatch.setattr(explanation, "_steps", lambda *_: [])
    reading: Any = SimpleNamespace(is_now=False)

    def entitled(application: str) -> object:
        shown = explanation.explain(mesh, reading, story.PRODUCT, application)
        return shown.fields["entitled"]

    assert entitled("west.app") is True
    log.operator(DomainQuarantined, domain="west", reason="r")
    log.govern()
    assert entitled("west.app") is False
    log.operator(DomainReleased, domain="west", reason="r")
    log.govern()
    assert entitled("west.app") is True
    log.say(LinkDeleted, "east", product=story.PRODUCT, cluster="west", reason="r")
    log.govern()
    assert entitled("west.app") is False
