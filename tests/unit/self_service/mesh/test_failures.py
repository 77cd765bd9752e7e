"""The failures that `sdm status` shows."""

import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from local_platform.supervision.state import ServiceStatus, State
from mesh_events import connectors, facts, intents, statements
from self_service.cli.app import app
from self_service.cli.framework.times import stamp
from self_service.cli.mesh.context import Mesh
from self_service.cli.mesh.failures import COLUMNS, EMERGENCIES, emergencies, failures
from self_service.cli.platform import commands
from tests import sample_history as story
from tests.memory_log import MemoryLog, at


def running() -> MemoryLog:
    """A link, a statement and a connector, all ACTIVE."""
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    log.say(statements.StatementAdded, "east", **story.statement())
    log.say(connectors.ConnectorAdded, "east", **story.connector())
    story.settle(log)
    return log


def test_what_runs_is_no_failure() -> None:
    assert failures(running().image) == []


def test_a_freeze_of_every_domain_is_shown_with_what_ends_it() -> None:
    log = running()
    until = log.now + 60_000
    log.operator(intents.DomainFrozen, domain="mesh", until=at(until), reason="it leaks")
    log.govern()
    (frozen,) = emergencies(log.image, until - 1)
    assert frozen["next"] == "end it with `sdm thaw --all --reason WHY --domain mesh`"


def test_a_freeze_and_a_quarantine_are_shown_with_what_ends_them() -> None:
    log = running()
    until = log.now + 60_000
    reason = {"reason": "it leaks"}
    log.operator(intents.DomainFrozen, domain="east", until=at(until), **reason)
    log.operator(intents.DomainQuarantined, domain="west", **reason)
    log.govern()
    frozen, cut_off = emergencies(log.image, until - 1)
    assert all(set(one) == set(EMERGENCIES) for one in (frozen, cut_off))
    assert (frozen["domain"], frozen["measure"], frozen["until"]) == (
        "east",
        "frozen",
        stamp(until),
    )
    assert "sdm thaw east" in frozen["next"]
    assert (cut_off["domain"], cut_off["measure"], cut_off["until"]) == (
        "west",
        "quarantined",
        None,
    )
    assert "sdm release west" in cut_off["next"]
    assert emergencies(log.image, until) == [cut_off]
    # while clocks disagree no further freeze ends
    disagreeing = log.image._replace(skew=3_600_000)
    assert emergencies(log.image, disagreeing.ended_by(until)) == [frozen, cut_off]


def test_each_failure_has_its_code_and_next_step() -> None:
    log = running()
    image = log.image
    fault = {"code": "source_gap", "reason": "records are gone", "retriable": False}
    story.told(log, facts.LinkFailed, **fault)
    about = {
        "statement": story.STATEMENT,
        "generation": image.statements[story.STATEMENT].generation,
    }
    fault = {"code": "engine_unavailable", "reason": "Spark is silent", "retriable": True}
    log.report(statements.StatementFailed, **about, **fault)
    about = {
        "connector": story.CONNECTOR,
        "generation": image.connectors[story.CONNECTOR].generation,
    }
    fault = {"code": "task_failed", "reason": "no such table"}
    log.report(connectors.ConnectorFailed, **about, **fault)
    found = failures(log.image)
    assert all(set(COLUMNS) == set(one) for one in found)
    assert [(one["kind"], one["name"], one["code"]) for one in found] == [
        ("link", story.LINK, "source_gap"),
        ("statement", story.STATEMENT, "engine_unavailable"),
        ("connector", story.CONNECTOR, "task_failed"),
    ]
    link, statement, connector = (one["next"] for one in found)
    assert link == (
        f"see `sdm link describe {story.LINK}`, and source_gap in docs/reference/codes.md"
    )
    assert "`sdm streaming sql describe east.copied`" in statement
    assert statement.startswith("is retried")
    assert "`sdm connect connector describe east.shop`" in connector


@pytest.mark.parametrize(
    ("service", "state", "code"),
    [
        ("spark-east", State.STARTING, 0),
        ("spark-east", State.FAILED, 6),
        ("connect", State.STARTING, 6),
        ("connect", State.READY, 0),
    ],
)
def test_status_ends_well_beside_a_domains_server_that_is_being_started(
    monkeypatch: pytest.MonkeyPatch, service: str, state: State, code: int
) -> None:
    one = ServiceStatus(name=service, state=state, since=time.time(), log=Path("log"))
    services = SimpleNamespace(
        protocols=dict,
        readiness=dict,
        status=lambda **_: [one],
        certified_until=lambda: None,
        separates_domains=True,
    )
    monkeypatch.setattr(commands, "_platform", lambda: services)
    monkeypatch.setattr(commands, "_rows_behind", lambda *_: 0)
    monkeypatch.setattr(Mesh, "image", lambda *_: running().image)
    assert CliRunner().invoke(app, ["status", "-o", "json"]).exit_code == code


def test_status_lists_what_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    log = running()
    fault = {"code": "source_gap", "reason": "records are gone", "retriable": False}
    story.told(log, facts.LinkFailed, **fault)
    services = SimpleNamespace(
        protocols=dict,
        readiness=dict,
        status=lambda **_: [],
        certified_until=lambda: None,
        separates_domains=True,
    )
    monkeypatch.setattr(commands, "_platform", lambda: services)
    monkeypatch.setattr(commands, "_rows_behind", lambda *_: 0)
    monkeypatch.setattr(Mesh, "image", lambda *_: log.image)
    done = CliRunner().invoke(app, ["status", "-o", "json"])
    assert done.exit_code == 0
    [failed] = json.loads(done.stdout)["failed"]
    assert (failed["name"], failed["code"]) == (story.LINK, "source_gap")
    assert f"sdm link describe {story.LINK}" in CliRunner().invoke(app, ["status"]).stdout
