"""What a controller reports, as it is appended to the log."""

from typing import Any, cast

import pytest

from mesh_events import codec
from mesh_events.connectors import ConnectorFailed
from mesh_events.emit import LogWriter, Receipt
from mesh_events.facts import (
    AclApplied,
    CheckFailed,
    CheckPassed,
    DriftFound,
    DriftKind,
    EffectFailed,
    Fact,
    LinkFailed,
    Remedy,
)
from mesh_events.meta import LONGEST_REASON
from mesh_events.statements import StatementFailed
from processors.controllers.controller import NotLeaderError
from processors.worker import leadership
from processors.worker.leadership import LEASE_S, LeaderLease, now
from tests.memory_log import MemoryLog, key, meta

LONG = "a.path.to.a.field;" * 100_000
CUT = LONG[:LONGEST_REASON] + "…"


class Appended:
    """Keeps what a writer is given."""

    facts: list[Fact]

    def __init__(self) -> None:
        self.facts = []

    def append(self, fact: Fact, _: object) -> Receipt:
        self.facts.append(fact)
        return Receipt(fact.meta.id, len(self.facts))


def reported(fact: Fact) -> Fact:
    """A fact as it reaches the writer."""
    image, writer = MemoryLog().image, Appended()
    of_governor = LeaderLease(
        image.epoch, cast("LogWriter", writer), key("controller"), lambda: image, asked=now()
    )
    of_governor.report(fact)
    (found,) = writer.facts
    return found


def about() -> Any:
    return meta("mesh", "01a0c451-0000-7000-8000-000000000000", 0)


def test_a_reason_is_cut() -> None:
    common: dict[str, Any] = {"meta": about(), "code": "incompatible_schema", "reason": LONG}
    for fact in (
        CheckFailed(**common, offset=7, check="schema_registered"),
        StatementFailed(**common, statement="east.s", generation=1, retriable=False),
    ):
        assert reported(fact) == fact.model_copy(update={"reason": CUT})


def test_each_piece_of_evidence_is_cut() -> None:
    evidence = {"cluster": "east", "columns": LONG, "stream": "east.t"}
    fact = CheckPassed(meta=about(), offset=7, check="statement_sound", evidence=evidence)
    assert reported(fact) == fact.model_copy(update={"evidence": evidence | {"columns": CUT}})


HALF = "a property \ud800"
SPELT = r"a property \ud800"
DRIFT: dict[str, Any] = {"cluster": "east", "generation": -1, "basis": 7}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (CheckFailed, {"offset": 7, "check": "schema_registered", "code": "c", "reason": HALF}),
        (CheckPassed, {"offset": 7, "check": "statement_sound", "evidence": {HALF: HALF}}),
        (
            EffectFailed,
            {"subject": HALF, "effect": "e", "cluster": "c", "generation": 1, "reason": HALF},
        ),
        (LinkFailed, {"link": "l", "generation": 1, "code": "c", "reason": HALF}),
        (StatementFailed, {"statement": "s", "generation": 1, "code": "c", "reason": HALF}),
        (ConnectorFailed, {"connector": "n", "generation": 1, "code": "c", "reason": HALF}),
        (
            DriftFound,
            {
                **DRIFT,
                "subject": HALF,
                "bindings": [HALF],
                "drift": DriftKind.FOREIGN_RIGHT,
                "remedy": Remedy.LEFT,
                "principal": HALF,
                "topics": [HALF],
            },
        ),
    ],
)
def test_half_of_a_surrogate_pair_is_spelt_out(kind: type[Fact], fields: dict[str, Any]) -> None:
    """A registered schema can name one in pure ASCII, and no text of Avro can hold it."""
    more: dict[str, Any] = {"retriable": True} if "retriable" in kind.model_fields else {}
    fact = reported(kind(meta=about(), **fields, **more))
    assert codec.encode(fact, 7, key("controller"), key("root").public).value
    spelt = fact.model_dump_json()
    assert spelt.count(SPELT.replace("\\", r"\\")) == repr(fields).count(repr(HALF)[1:-1])


def test_a_text_is_short_enough_when_it_is_spelt_out() -> None:
    reason = "\ud800" * LONGEST_REASON
    fact = CheckFailed(meta=about(), offset=7, check="c", code="c", reason=reason)
    (found,) = [reported(fact).reason]  # type: ignore[attr-defined]
    assert found == (r"\ud800" * LONGEST_REASON)[:LONGEST_REASON] + "…"


def test_a_fact_with_short_texts_is_appended_as_it_is() -> None:
    fact = AclApplied(
        meta=about(), subject="r1", cluster="east", generation=3, bindings=["a", "b" * 300]
    )
    assert reported(fact) == fact


def test_a_governor_acts_only_when_no_earlier_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each acts for a lease after it heard of the log, so the next one waits for as long."""
    clock, image, writer = [100.0], MemoryLog().image, Appended()
    monkeypatch.setattr(leadership, "now", lambda: clock[0])

    def of(alone_from: float) -> LeaderLease:
        appends = cast("LogWriter", writer)
        return LeaderLease(
            image.epoch, appends, key("controller"), lambda: image, clock[0], alone_from
        )

    earlier, later = of(0.0), of(clock[0] + LEASE_S)
    fact = AclApplied(meta=about(), subject="r1", cluster="east", generation=3, bindings=["a"])
    earlier.check()
    with pytest.raises(NotLeaderError, match=r"an earlier governor may act for another 3.0 s"):
        later.report(fact)
    # the log is heard of all the while, by the later one alone
    clock[0] += LEASE_S - 0.01
    later.renew(clock[0])
    earlier.check()
    with pytest.raises(NotLeaderError, match="an earlier governor"):
        later.check()
    assert writer.facts == []
    clock[0] += 0.02
    later.report(fact)
    assert len(writer.facts) == 1
    with pytest.raises(NotLeaderError, match="nothing heard of the log"):
        earlier.check()
