"""What the answer to a revocation says of the data that stays."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from mesh_events import intents
from mesh_events.statements import StatementAdded
from projections.access import Access
from projections.lineage.graph import downstream
from self_service.cli.access.revocation import answer, next_step
from self_service.cli.app import app
from self_service.cli.lineage.commands import Scene, _lines
from self_service.cli.mesh import submitting
from self_service.cli.mesh.context import Mesh
from tests import sample_history as story
from tests.memory_log import MemoryLog
from tests.unit.projections.lineage.test_lineage import USERS, joined, revoked


def grant_of(log: MemoryLog) -> Access:
    return next(one for one in log.image.access.requests.values() if one.link)


def shown(log: MemoryLog) -> dict[str, Any]:
    return answer(log.image, grant_of(log), {"decision": "accepted"}).document()


def test_derived_topics_are_left_with_the_jobs_that_filled_them() -> None:
    log = joined()
    revoked(log)
    found = shown(log)
    assert found["copy"] == "PURGED"
    assert [(one["cluster"], one["topic"], one["name"]) for one in found["left"]] == [
        ("west", "west.greeted", "west.greeted")
    ]
    assert "sdm lineage show east.users --downstream" in (next_step(log.image, grant_of(log)) or "")


def test_dead_letters_of_a_statement_over_the_copy_are_left() -> None:
    """They are the records as they were; those of one that joins it are of its stream."""
    log = joined()
    over = story.statement(
        statement="west.over", stream="east.users", destination="west.over", application="west.app"
    )
    log.say(StatementAdded, "west", **over)
    story.settle(log)
    revoked(log)
    assert [one["topic"] for one in shown(log)["left"]] == [
        "west.greeted",
        "west.over",
        "west.over.dead",
    ]


def test_nothing_is_left_where_nothing_was_made() -> None:
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    revoked(log)
    assert shown(log) == {"decision": "accepted", "copy": "PURGED", "left": []}
    assert next_step(log.image, grant_of(log)) is None


def test_the_copy_is_to_be_purged_until_that_is_reported() -> None:
    log = joined()
    story.answer(log, intents.AccessRevoked, grant_of(log).request)
    assert shown(log)["copy"] == "to be PURGED"


def test_the_copy_is_retained_where_the_grant_says_so() -> None:
    log = MemoryLog()
    story.published(log)
    asked = story.granted(log, on_revoke=intents.OnRevoke.RETAIN)
    story.settle(log)
    story.answer(log, intents.AccessRevoked, asked)
    assert shown(log)["copy"] == "RETAINED"
    story.settle(log)
    assert shown(log)["copy"] == "RETAINED"


def test_lineage_shows_the_state_of_a_copy_that_is_gone() -> None:
    log = joined()
    revoked(log)
    lines = list(_lines(Scene(log.image), downstream(log.image, USERS), "downstream"))
    assert "├─ link east.users@west (DELETED, copy PURGED)" in lines
    assert any("west.greeted @ west" in line for line in lines)


def test_the_command_lists_what_is_left_and_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    log = joined()
    grant = grant_of(log)
    revoked(log)
    said = SimpleNamespace(fields=lambda: {"decision": "accepted"}, image=None)
    monkeypatch.setattr(Mesh, "image", lambda *_: log.image)
    monkeypatch.setattr(Mesh, "acting_as", lambda *_: SimpleNamespace(domain="east"))
    monkeypatch.setattr(submitting, "submit", lambda *_, **__: said)
    words = ["access", "revoke", str(grant.offset), "-r", "over", "-d", "east"]
    done = CliRunner().invoke(app, [*words, "-o", "json"])
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert (document["decision"], document["copy"]) == ("accepted", "PURGED")
    assert [one["topic"] for one in document["left"]] == ["west.greeted"]
    assert "ask west to delete them" in done.stderr
    table = CliRunner().invoke(app, words).stdout
    assert "west.greeted  west" in table
