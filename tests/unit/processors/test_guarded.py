"""One server's odd answer is an error of that server, and ends no controller's round."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mesh_events.errors import InfrastructureError, MeshError, UnusableRecordError
from mesh_events.facts import EffectFailed
from mesh_events.kafka.requests import reading
from mesh_events.read import decode_row
from processors.clusters.secrets import SecretStore
from processors.connect import rest
from processors.controllers.controller import NotLeaderError, guarded
from processors.controllers.rights.credentials import CredentialsController
from processors.controllers.rights.quotas import Budget, QuotasController
from processors.controllers.rights.rights import RightsController
from processors.controllers.rights.unexpected import UnexpectedAcls
from processors.controllers.run_ends import RunEndsController
from processors.controllers.topics.schemas import SchemasController
from processors.lineage import receiver
from processors.lineage.reader import _ended
from processors.registries.subject_rules import SubjectRules
from tests import sample_history as story
from tests.connectors.memory import MemoryLeadership
from tests.memory_log import MemoryLog


def odd(*_: object, **__: object) -> NoReturn:
    raise AssertionError("what no broker would answer")


class OddRest:
    def __init__(self, found: object) -> None:
        self.found = found

    def ask(self, *_: object, **__: object) -> object:
        return self.found

    def unexpected(self) -> InfrastructureError:
        return InfrastructureError("no registry", retriable=False)


CONTROLLERS: dict[str, Callable[[Path], Any]] = {
    "rights": lambda _: RightsController(odd, unexpected=UnexpectedAcls(frozenset())),
    "logins": lambda folder: CredentialsController(odd, SecretStore(folder)),
    "quotas": lambda _: QuotasController(odd, Budget(1e6, 100)),
    "schemas": lambda _: SchemasController(OddRules()),  # type: ignore[arg-type]
    "runs": lambda _: RunEndsController(odd, None, lambda _: None),  # type: ignore[arg-type]
}


class OddRules:
    level = set_level = staticmethod(odd)


@pytest.mark.parametrize("name", CONTROLLERS)
def test_a_controllers_round_goes_on_behind_what_nobody_expected(name: str, tmp_path: Path) -> None:
    log = MemoryLog()
    story.domains(log)
    story.published(log)
    leadership: Any = MemoryLeadership(log)
    CONTROLLERS[name](tmp_path).reconcile(log.image, leadership)
    told = [one for one in leadership.facts if isinstance(one, EffectFailed)]
    assert all("AssertionError" in one.reason for one in told)
    assert bool(told) is (name == "logins")


def test_the_guard_lets_through_what_is_expected() -> None:
    for fault in (InfrastructureError("away", retriable=True), NotLeaderError("over")):
        with pytest.raises(type(fault)), guarded("east"):
            raise fault
    with pytest.raises(InfrastructureError, match="east: KeyError; tried again"), guarded("east"):
        raise KeyError("secret")


@pytest.mark.parametrize("fault", [AssertionError(), EOFError(), OverflowError(), ValueError()])
def test_an_answer_that_the_client_cannot_read_is_an_error_of_the_broker(fault: Exception) -> None:
    with pytest.raises(InfrastructureError, match="cannot be read"), reading("listing"):
        raise fault


@pytest.mark.parametrize("found", [{"compatibilityLevel": "SEMANTIC"}, ["x"], "x", 5])
def test_a_rule_of_a_registry_that_is_none_is_an_error_of_the_registry(found: object) -> None:
    with pytest.raises(InfrastructureError):
        SubjectRules(OddRest(found)).level("s")  # type: ignore[arg-type]


class Schemas:
    def __init__(self, text: str) -> None:
        self.text = text

    def schema_text(self, _: int) -> str:
        return self.text


@pytest.mark.parametrize(
    "schema", ['"string"', '["null"]', '{"type": "object"}', "syntax", "[" * 100_000, '{"type": 7}']
)
def test_a_row_whose_schema_is_not_of_a_record_is_unusable(schema: str) -> None:
    with pytest.raises(UnusableRecordError):
        decode_row(b"\0\0\0\0\7x", Schemas(schema))  # type: ignore[arg-type]


def test_an_answer_of_a_receiver_with_a_length_that_is_none_is_passed_over() -> None:
    class Response:
        headers = {"Content-Length": "9" * 5000}  # noqa: RUF012
        closed = False

        def close(self) -> None:
            self.closed = True

    response: Any = Response()
    receiver._finish(response)
    assert response.closed


def test_deep_json_on_the_topic_of_lineage_is_no_event() -> None:
    assert _ended(b"[" * 200_000) is None


@pytest.mark.parametrize(("status", "body"), [(200, b"[" * 200_000), (400, b"[1]"), (400, b"5")])
def test_odd_json_of_connect_is_an_error_of_connect(
    monkeypatch: pytest.MonkeyPatch, status: int, body: bytes
) -> None:
    def answer(*_: object, **__: object) -> rest.requests.Response:
        found = rest.requests.Response()
        found.status_code, found._content = status, body
        return found

    monkeypatch.setattr(rest.requests, "request", answer)
    with pytest.raises(MeshError):
        rest.Connect("http://127.0.0.1:1", ("u", "p")).deployed()
