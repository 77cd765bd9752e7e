"""What is told of a statement's runs, as OpenLineage has it."""

import json
from datetime import UTC, datetime
from typing import Any

from openlineage.client.event_v2 import RunState
from openlineage.client.serde import Serde

from processors.lineage.events import event
from projections.links import Desired
from tests.statements.memory import DEAD, NAME, OUT, STREAM, MemoryStatement

WHEN = datetime(2026, 3, 1, 12, tzinfo=UTC)


def told(made: MemoryStatement) -> list[tuple[RunState, dict[str, Any]]]:
    return [
        (kind, json.loads(Serde.to_json(event(kind, run, WHEN, reason))))
        for kind, run, reason in made.lineage.told
    ]


def test_a_start_tells_sql_schemas_and_columns() -> None:
    made = MemoryStatement()
    made.settle()
    kind, found = told(made)[0]
    assert kind is RunState.START
    assert (found["job"]["namespace"], found["job"]["name"]) == ("mesh.statements", NAME)
    assert found["job"]["facets"]["sql"]["query"] == f"SELECT ip FROM {STREAM}"
    assert found["job"]["facets"]["ownership"]["owners"][0]["name"] == "team-east"
    (source,) = found["inputs"]
    assert (source["namespace"], source["name"]) == ("kafka://east.test:9092", STREAM)
    assert [one["name"] for one in source["facets"]["schema"]["fields"]] == ["ip"]
    assert [one["name"] for one in found["outputs"]] == [OUT, DEAD]
    columns = found["outputs"][0]["facets"]["columnLineage"]["fields"]
    (origin,) = columns["ip"]["inputFields"]
    assert (origin["name"], origin["field"]) == (STREAM, "ip")
    assert origin["transformations"][0]["type"] == "DIRECT"


def test_a_run_goes_on_completes_or_fails_under_its_own_id() -> None:
    made = MemoryStatement()
    made.settle()
    made.engine.queries[-1].fault = "the disk is full"
    made.settle()
    made.harness.direct(Desired.PAUSED)
    made.settle()
    kinds = [kind for kind, _ in told(made)]
    assert kinds[0] is RunState.START
    assert RunState.RUNNING in kinds
    failed = next(found for kind, found in told(made) if kind is RunState.FAIL)
    assert "the disk is full" in failed["run"]["facets"]["errorMessage"]["message"]
    assert kinds[-1] is RunState.COMPLETE
    runs = [found["run"]["runId"] for _, found in told(made)]
    assert len(set(runs)) == 2
    assert failed["run"]["runId"] == runs[0]
