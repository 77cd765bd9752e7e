"""A connector's config before it is said: what its database is asked."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from processors.connect.captured_tables import Captured
from projections.connectors.config import JDBC_SINK, POSTGRES
from projections.image import EMPTY
from self_service.cli.connect import change
from self_service.cli.framework.options import StartOptions
from self_service.cli.mesh.context import Mesh

SOURCE = {"connector.class": POSTGRES, "table.include.list": "public.users"}
SINK = {"connector.class": JDBC_SINK}


class Worker:
    """A worker during whose start no database answers; `looks` are those before and behind it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, answers: bool) -> None:
        self.answers, self.runs = answers, False
        self.looks: list[bool] = []
        self.api = SimpleNamespace(worker=self._start)
        monkeypatch.setattr(change, "require_tables", lambda *_: self._look() or None)
        monkeypatch.setattr(change, "require_sink", lambda *_: self._look() is not None)

    def password(self, *_: object) -> str:
        """See `ConnectCluster`."""
        return "s3cret"

    def may_reach(self, *_: object) -> bool:
        """See `ConnectCluster`."""
        return True

    def _start(self) -> None:
        self.runs = True

    def _look(self) -> Captured | None:
        self.looks.append(self.runs)
        return Captured([], None) if self.answers or self.runs else None


def looked(worker: Any, config: dict[str, str], *, starts: bool) -> None:
    options = StartOptions(domain="east")
    made = change.Change(Mesh(Path("nowhere")), options, "east.c", config, None, None)
    made._with_tables(worker, config, EMPTY, starts=starts)


@pytest.mark.parametrize("config", [SOURCE, SINK])
@pytest.mark.parametrize(
    ("answers", "starts", "looks"),
    [(False, True, [False, True]), (True, True, [False]), (False, False, [False])],
)
def test_a_database_that_does_not_answer_is_asked_again_once_the_worker_is_started(
    config: dict[str, str],
    answers: bool,
    starts: bool,
    looks: list[bool],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    worker = Worker(monkeypatch, answers=answers)
    looked(worker, config, starts=starts)
    assert worker.looks == looks
    assert worker.runs is starts
    assert ("the database" in capsys.readouterr().err) is (looks == [False] and not answers)
