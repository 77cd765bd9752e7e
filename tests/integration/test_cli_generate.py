"""`sdm generate` on a running mesh: what it says it writes stands in the topic."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local_platform import PlatformSettings
from self_service.cli.framework.exits import ExitCode
from tests.integration.test_cli import Party, Sdm, owner, sdm
from tests.kafka_client import eventually, fresh

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.platform


def consumed(sdm: Sdm, topic: str, owner: Party) -> list[dict[str, Any]]:
    return sdm("topic", "consume", topic, "-d", owner.name).lines


def end(sdm: Sdm, topic: str, owner: Party) -> int:
    described = sdm("topic", "describe", topic, "-d", owner.name).document
    return sum(one["end"] for one in described["offsets"])


def test_clicks_are_written_with_their_schemas_and_are_the_same_again(
    sdm: Sdm, owner: Party
) -> None:
    written = []
    for _ in range(2):
        topic = f"{owner.name}.{fresh('clicks')}"
        told = sdm(
            *("generate", topic, "--kind", "clickstream", "--count", "120", "--fast"),
            *("--seed", "3", "--users", "60", "--start", "2026-01-01", "-p", "2", "-d", owner.name),
        ).document
        assert (told["records"], told["next"]) == (120, 120)
        found = consumed(sdm, topic, owner)
        assert all(one["key"] == {"userid": one["value"]["userid"]} for one in found)
        assert {one["partition"] for one in found} == {0, 1}
        written.append(sorted(json.dumps(one["value"], sort_keys=True) for one in found))
        subjects = [one["subject"] for one in sdm("schema", "list", topic).document]
        assert subjects == [f"{topic}-key", f"{topic}-value"]
    assert len(written[0]) == 120
    assert written[0] == written[1]


def test_records_of_any_schema_are_written_under_a_field_as_their_key(
    sdm: Sdm, owner: Party, tmp_path: Path
) -> None:
    number = {"type": "long", "arg.properties": {"iteration": {"start": 5}}}
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": number}, {"name": "note", "type": ["null", "string"]}],
    }
    path, topic = tmp_path / "order.avsc", f"{owner.name}.{fresh('orders')}"
    path.write_text(json.dumps(schema))
    own = ("-d", owner.name)
    sdm(
        *("generate", topic, "--schema", str(path), "--key-field", "id", "--count", "3", "-p", "1"),
        *("--rate", "1000", *own),
    )
    assert [(one["key"], one["value"]["id"]) for one in consumed(sdm, topic, owner)] == [
        (5, 5),
        (6, 6),
        (7, 7),
    ]
    # without a schema of its own, that of the topic
    sdm("generate", topic, "--key-field", "id", "--count", "1", "--first", "9", *own)
    assert consumed(sdm, topic, owner)[-1]["key"] == 14
    told = sdm("generate", f"{owner.name}.bare", "--count", "1", *own, code=ExitCode.USAGE)
    assert f"{owner.name}.bare has no schema: give --kind" in told.err
    for bad, code in (
        (("--kind", "weather"), ExitCode.USAGE),
        (("--kind", "trades", "--schema", str(path)), ExitCode.USAGE),
        (("--kind", "trades", "--rate", "5", "--fast"), ExitCode.USAGE),
        (("--kind", "trades", "--count", "1"), ExitCode.REFUSED),
        (("--schema", str(path), "--key-field", "no"), ExitCode.USAGE),
    ):
        told = sdm("generate", topic, *bad, *own, code=code)
        assert "Traceback" not in told.err
    told = sdm(
        *("generate", f"{owner.name}.no-such", "--kind", "trades", "--count", "1", *own),
        code=ExitCode.NOT_FOUND,
    )
    assert "sdm topic create" in told.err


def test_ctrl_c_ends_it_with_every_record_that_it_counts(
    sdm: Sdm, owner: Party, settings: PlatformSettings
) -> None:
    topic = f"{owner.name}.{fresh('trades')}"
    argv = [sys.executable, "-m", "self_service.cli", "generate", topic, "--kind", "trades"]
    argv += ["--rate", "200", "-p", "1", "-d", owner.name, "-o", "json"]
    environment = {**os.environ, "SDM_HOME": str(settings.home)}
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as running:

        def some() -> bool:
            there = [one["topic"] for one in sdm("topic", "list", "-d", owner.name).document]
            return topic in there and end(sdm, topic, owner) > 20

        try:
            eventually(some, "some records are there")
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=240)
        finally:
            running.kill()
    assert running.returncode == 0, err
    assert json.loads(out)["records"] == end(sdm, topic, owner) > 20
