"""`sdm drift` on a running mesh: rights and topics that somebody changed."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions, NewTopic
from typer.testing import CliRunner

from local_platform import PlatformSettings
from mesh_events import references
from mesh_events.facts import Remedy
from mesh_events.intents import ProductUpdated
from processors.clusters.rights import Acl
from self_service.cli.app import app
from self_service.cli.framework.exits import ExitCode
from tests.integration.rights.test_drift import changed_behind, told, wait_told
from tests.mesh_fixtures import kit
from tests.mesh_kit import Domain, Mesh, eventually, fresh

__all__ = ["kit"]

Items = list[dict[str, Any]]
Look = Callable[..., tuple[int, Items, str]]


@pytest.fixture
def look(settings: PlatformSettings) -> Look:
    """Run `sdm drift ...`; the exit code, the answer, and what was said beside it."""

    def run(*arguments: str) -> tuple[int, Items, str]:
        variables = {"SDM_HOME": str(settings.home), "SDM_DOMAIN": None}
        done = CliRunner().invoke(app, ["drift", *arguments, "-o", "json"], env=variables)
        assert "Traceback" not in done.stderr
        return done.exit_code, json.loads(done.stdout or "[]"), done.stderr

    return run


@pytest.fixture(scope="module")
def owner(kit: Mesh) -> Domain:
    return kit.register_domain("driftcli")


def about(items: Items, topic: str) -> Items:
    return [one for one in items if topic in one["topics"]]


def test_a_strangers_right_is_shown_until_it_is_gone(kit: Mesh, owner: Domain, look: Look) -> None:
    _, topic = owner.product()
    stranger = fresh("mallory")
    _, before, _ = look()
    assert not about(before, topic)
    with changed_behind(kit, Acl(stranger, "read", "topic", topic)):
        code, items, said = look("--cluster", "east")
        [found] = about(items, topic)
        assert (code, found["kind"], found["principal"]) == (
            ExitCode.FINDING,
            "FOREIGN_RIGHT",
            stranger,
        )
        assert "docs/operating/drift.md" in said
        assert not about(look("--cluster", "west")[1], topic)
        fact = wait_told(kit, f"principal/{stranger}", Remedy.LEFT)
        [found] = about(look("show")[1], topic)
        assert found["told_since"] is not None
        assert found["bindings"] == fact.bindings
    wait_told(kit, f"principal/{stranger}", Remedy.ENDED)
    assert not about(look()[1], topic)
    code, items, _ = look("history")
    mine = [one["remedy"] for one in items if one["principal"] == stranger]
    assert (code, mine) == (ExitCode.OK, ["LEFT", "ENDED"])
    assert len(mine) == len(told(kit, f"principal/{stranger}"))


def test_a_products_topic_that_is_widened_deleted_or_made_again_is_shown(
    kit: Mesh, owner: Domain, look: Look, settings: PlatformSettings
) -> None:
    product, topic = owner.product()
    admin, before = kit.admin(), kit.image().offset

    def failed(*arguments: str) -> list[str]:
        """The codes that a command lists for the product."""
        variables = {"SDM_HOME": str(settings.home), "SDM_DOMAIN": None}
        done = CliRunner().invoke(app, [*arguments, "-o", "json"], env=variables)
        listed = json.loads(done.stdout)["failed"]
        assert all(one["next"] for one in listed)
        return [one["code"] for one in listed if one["name"] == product]

    def kinds() -> list[tuple[str, str]]:
        return [(one["kind"], one["subject"]) for one in about(look()[1], topic)]

    assert kinds() == []
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(15)
    eventually(lambda: kinds() == [("PARTITIONS_CHANGED", product)], "two partitions")
    admin.delete_topics([topic])[topic].result(15)
    eventually(lambda: kinds() == [("TOPIC_MISSING", product)], "no topic")
    wait_told(kit, f"product/{product}", Remedy.LEFT)
    describe = ("product", "describe", product)
    assert failed("status") == failed(*describe) == ["TOPIC_MISSING"]
    assert failed(*describe, "--at-offset", str(before)) == []
    missing = kit.image().offset
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(15)
    eventually(lambda: kinds() == [("TOPIC_RECREATED", product)], "another topic")
    [found] = about(look()[1], topic)
    assert f"sdm product update {product} --topic-replaced" in found["next"]
    owner.say(ProductUpdated, product=product, topic_replaced=True)
    eventually(lambda: kinds() == [], "the topic is offered as it is")
    wait_told(kit, f"product/{product}", Remedy.ENDED)
    assert failed("status") == failed(*describe) == []
    assert failed(*describe, "--at-offset", str(missing)) == ["TOPIC_MISSING"]


@pytest.mark.usefixtures("kit")
def test_who_is_not_the_operator_is_told_whose_login_it_needs(
    look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = references.resolve

    def resolve(reference: str) -> str:
        if reference.endswith("/admin"):
            raise references.UnresolvedReferenceError(f"secret file {reference}: is not here")
        return real(reference)

    monkeypatch.setattr(references, "resolve", resolve)
    code, _, said = look()
    assert code == ExitCode.CONFIGURATION
    assert "needs the operator's login admin" in said
    assert len(said.strip().splitlines()) == 1
