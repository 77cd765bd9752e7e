"""The demo's checks fail where what they claim is not so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from self_service.demo.__main__ import _ready
from self_service.demo.audit import SAID, _in_order, _said, _says
from self_service.demo.enrichment import _values
from self_service.demo.story import _is, _is_shown, _of_rows

READY = {"service": "governor", "state": "ready"}
LATE = {"service": "connect", "state": "starting"}
SHOWN = {
    "owner": "team-east", "quality": "STANDARD", "sla": 2, "schema_subject": "east.users-value",
}  # fmt: skip


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"services": [READY]}, (True, "")),
        ({"services": [READY, LATE]}, (False, "connect")),
        ({"services": []}, (False, "")),
        (None, (False, "")),
    ],
)
def test_servers_are_ready_where_each_of_them_is(status: object, expected: object) -> None:
    assert _ready(status) == expected


@pytest.mark.parametrize("answer", [{"valid": False}, {"valid": "yes"}, {}, None])
def test_only_an_answer_that_says_so_holds(answer: object) -> None:
    assert _says({"valid": True}, "valid")
    assert not _says(answer, "valid")


@pytest.mark.parametrize("name", SHOWN)
def test_the_catalog_has_to_show_each_promise(name: str) -> None:
    assert _is_shown(SHOWN)
    assert not _is_shown({**SHOWN, name: None})


@pytest.mark.parametrize(
    "shown", [{"state": "FAILED", "grants": [{"state": "ACTIVE"}]}, {"copy": "ACTIVE"}, {}, None]
)
def test_a_link_is_active_where_its_own_state_says_so(shown: object) -> None:
    assert _is({"state": "ACTIVE", "copy": "PRESENT"}, state="ACTIVE")
    assert not _is(shown, state="ACTIVE")


def test_rows_are_told_by_what_they_hold() -> None:
    records = [{"value": {"op": "r", "after": {"name": name}}} for name in ("lamp", "chair")]
    assert _of_rows(records, "name") == ["chair", "lamp"]
    assert _values([{"a": 1, "b": 2}, {"a": 2}]) == _values([{"a": 2}, {"b": 2, "a": 1}])
    assert _values([{"a": 1}]) != _values([{"a": "1"}])


def test_the_log_has_to_tell_all_that_domains_said_and_nothing_else() -> None:
    told = [dict(zip(("domain", "type", "outcome"), one, strict=True)) for one in SAID]
    mesh = {"domain": "mesh", "type": "IntentAccepted", "outcome": ""}
    assert _said([mesh, *told]) == SAID
    assert _said(told[1:]) != SAID
    assert _said([*told, {**told[0], "domain": "north"}]) != SAID


@pytest.mark.parametrize("found", ["ba", "a", "", "b"])
def test_effects_have_to_come_in_their_order(found: str) -> None:
    assert _in_order("xaxbx", "a", "b")
    assert not _in_order(found, "a", "b")


@pytest.mark.parametrize("given", ["x", "", "70000"])
def test_a_port_of_the_demo_that_is_of_no_use_is_named(given: str, tmp_path: Path) -> None:
    settings = {"SDM_DEMO_PORT_BASE": given, "SDM_DEMO_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "self_service.demo"],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (7, "")
    assert done.stderr == (
        f"SDM_DEMO_PORT_BASE is {given!r}: set it to a whole number from 1024 to 32567\n"
    )
