"""The demo's checks fail where what they claim is not so."""

import pytest

from self_service.demo.__main__ import _ready
from self_service.demo.audit import _says
from self_service.demo.story import _is_shown

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
