"""Generators that the mesh keeps: each record once, through kills, stops and what goes wrong."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local_platform import PlatformSettings
from local_platform.layout import Layout
from self_service.cli.framework.exits import ExitCode
from tests.integration.test_cli import Party, Sdm, owner, sdm
from tests.kafka_client import eventually, fresh

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.platform

NUMBERED = {
    "type": "record",
    "name": "Numbered",
    "fields": [
        {"name": "n", "type": {"type": "long", "arg.properties": {"iteration": {"start": 0}}}}
    ],
}


@pytest.fixture
def schema(tmp_path: Path) -> str:
    """A schema by which record N says that it is N."""
    path = tmp_path / "numbered.avsc"
    path.write_text(json.dumps(NUMBERED))
    return str(path)


@pytest.fixture
def name(sdm: Sdm) -> Iterator[str]:
    """A generator's name; what runs under it is deleted at the end."""
    found = fresh("made")
    yield found
    if found in [one["generator"] for one in sdm("generator", "list").document]:
        sdm("generator", "delete", found)


def begin(sdm: Sdm, name: str, owner: Party, schema: str, *more: str) -> str:
    """Let a generator of numbered records run; returns its topic."""
    topic = f"{owner.name}.{fresh('numbers')}"
    given = ("--schema", schema, "--key-field", "n", "-p", "3", *more)
    sdm("generate", topic, *given, "--background", "--name", name, "-d", owner.name)
    return topic


def state(sdm: Sdm, name: str) -> dict[str, Any]:
    found: dict[str, Any] = sdm("generator", "describe", name).document
    return found


def reach(sdm: Sdm, name: str, written: int) -> dict[str, Any]:
    """Wait until so many records are written."""

    def enough() -> bool:
        found = state(sdm, name)
        return found["state"] in ("writing", "done") and bool(found["written"] >= written)

    eventually(enough, f"{name} has written {written}: {state(sdm, name)}")
    return state(sdm, name)


def killed(sdm: Sdm, name: str, written: int) -> int:
    """Kill its process once so many records are written; returns how many were, once it is back."""
    before = reach(sdm, name, written)
    os.kill(before["pid"], signal.SIGKILL)
    eventually(lambda: state(sdm, name)["pid"] not in (None, before["pid"]), "a new process")
    return int(before["written"])


def numbers(sdm: Sdm, topic: str, owner: Party) -> list[int]:
    consumed = sdm("topic", "consume", topic, "-d", owner.name).lines
    return sorted(one["value"]["n"] for one in consumed)


def test_each_record_is_there_once_through_kills_and_stops(
    sdm: Sdm, owner: Party, name: str, schema: str, settings: PlatformSettings
) -> None:
    topic = begin(sdm, name, owner, schema, "--rate", "500")
    killed(sdm, name, 200)
    before = killed(sdm, name, 800)
    # without --follow, reading comes to an end while it is written
    assert len(sdm("topic", "consume", topic, "--timeout", "240", "-d", owner.name).lines) >= before
    after = reach(sdm, name, before + 200)
    assert (after["kind"], after["rate"], after["restarts"]) == ("Numbered", 500.0, 2)

    stopped = sdm("generator", "stop", name).document
    assert (stopped["state"], stopped["pid"]) == ("stopped", None)
    assert numbers(sdm, topic, owner) == list(range(stopped["written"]))
    assert state(sdm, name)["written"] == stopped["written"]

    # where it stands is on the cluster: the home's own note only tells people
    Layout(settings.home).data.joinpath(f"generator-{name}", "progress.json").unlink()
    sdm("generator", "start", name)
    reach(sdm, name, stopped["written"] + 100)
    stopped = sdm("generator", "stop", name).document
    assert numbers(sdm, topic, owner) == list(range(stopped["written"]))


def test_a_generator_whose_count_is_reached_ends_and_is_told_of_until_it_is_dropped(
    sdm: Sdm, owner: Party, name: str, schema: str
) -> None:
    topic = begin(sdm, name, owner, schema, "--count", "250", "--first", "40", "--fast")
    eventually(lambda: state(sdm, name)["pid"] is None, "its process ends")
    done = state(sdm, name)
    assert (done["state"], done["written"], done["next"], done["restarts"]) == ("done", 250, 290, 0)
    assert numbers(sdm, topic, owner) == list(range(40, 290))
    assert "generator_done" in sdm("generator", "start", name, code=ExitCode.REFUSED).err

    again = ("generate", topic, "--kind", "trades", "--background", "--name", name)
    assert "generator_exists" in sdm(*again, "-d", owner.name, code=ExitCode.REFUSED).err
    sdm("generator", "delete", name)
    assert name not in [one["generator"] for one in sdm("generator", "list").document]
    for verb in ("describe", "stop", "start", "delete"):
        told = sdm("generator", verb, name, code=ExitCode.NOT_FOUND)
        assert f"there is no generator {name}: `sdm generator list`" in told.err


def test_what_cannot_run_is_told_at_once_and_leaves_nothing(sdm: Sdm, owner: Party) -> None:
    topic, own = f"{owner.name}.{fresh('none')}", ("-d", owner.name)
    kind = ("generate", topic, "--kind", "trades")
    for more, code, said in (
        (("--name", "x"), ExitCode.USAGE, "--name needs --background"),
        (("--background", "--for", "5"), ExitCode.USAGE, "give --count"),
        (("--background", "--cluster", "west"), ExitCode.USAGE, "leave out"),
        (("--background", "--name", "a/b"), ExitCode.USAGE, "cannot be a generator"),
        (("--background",), ExitCode.NOT_FOUND, "sdm topic create"),
    ):
        assert said in sdm(*kind, *more, *own, code=code).err
    assert topic not in [one["generator"] for one in sdm("generator", "list").document]


def test_a_generator_whose_topic_is_deleted_fails_and_nothing_else_does(
    sdm: Sdm, owner: Party, name: str, schema: str
) -> None:
    topic = begin(sdm, name, owner, schema, "--rate", "50")
    reach(sdm, name, 20)
    sdm("topic", "delete", topic, "--yes", "-d", owner.name)
    eventually(lambda: state(sdm, name)["state"] == "failed", "it gives up")
    assert f"there is no topic {topic}" in state(sdm, name)["error"]
    services = sdm("status", code=ExitCode.INFRASTRUCTURE).document["services"]
    # a domain's servers of other tests may just start or end: whose they are, does not matter here
    ours = [one for one in services if not one["service"].startswith(("connect-", "spark-"))]
    assert [one["service"] for one in ours if one["state"] != "ready"] == [f"generator-{name}"]

    refused = sdm("generator", "start", name, code=ExitCode.REFUSED).err
    assert f"there is no topic {topic}" in refused
    sdm("topic", "create", topic, "-p", "3", "-d", owner.name)
    refused = sdm("generator", "start", name, code=ExitCode.REFUSED).err
    assert "was deleted and another one was created under its name" in refused
    assert numbers(sdm, topic, owner) == []


def test_a_generator_that_lost_its_rights_fails_and_goes_on_once_it_has_them(
    sdm: Sdm, owner: Party, name: str, schema: str
) -> None:
    topic = begin(sdm, name, owner, schema, "--rate", "200")
    reach(sdm, name, 100)
    sdm("quarantine", owner.name, "--reason", "a test", "-d", "mesh")
    eventually(lambda: state(sdm, name)["state"] == "failed", "it gives up")
    assert "kafka_denied" in state(sdm, name)["error"]
    sdm("release", owner.name, "--reason", "a test", "-d", "mesh", "--until", "applied")

    before = sdm("generator", "start", name).document["written"]
    reach(sdm, name, before + 100)
    stopped = sdm("generator", "stop", name).document
    assert numbers(sdm, topic, owner) == list(range(stopped["written"]))
