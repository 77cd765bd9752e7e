"""Every event of lineage against OpenLineage's own schemas, and what its facets tell."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from openlineage.client.event_v2 import RunState
from openlineage.client.serde import Serde
from referencing.exceptions import Unresolvable

from mesh_events import connectors
from processors.lineage.events import (
    LARGEST_EVENT,
    Dataset,
    JobRun,
    Origin,
    encoded,
    event,
    fitting,
)
from projections.connectors.config import DEAD_LETTERS, JDBC_SINK
from projections.links import Desired
from tests import openlineage
from tests import sample_history as story
from tests.connectors.memory import NAME, MemoryConnector
from tests.links.memory import MemoryLink
from tests.links.real import LineageList
from tests.statements.memory import DEAD, OUT, STREAM, MemoryStatement

WHEN = datetime(2026, 3, 1, 12, tzinfo=UTC)
EVERY = {"START", "RUNNING", "FAIL", "COMPLETE"}
USER = json.dumps(
    {"type": "record", "name": "User", "fields": [{"name": "id", "type": ["null", "long"]}]}
)
SINK = {
    "connector.class": JDBC_SINK,
    "topics": "east.users",
    "connection.url": "jdbc:postgresql://db.invalid/reports",
    "primary.key.mode": "record_key",
    "insert.mode": "upsert",
    "connection.password": connectors.OWN_SECRET,
    "errors.tolerance": "all",
    DEAD_LETTERS: "east.shop.dead",
}
Told = list[dict[str, Any]]


def events(lineage: LineageList) -> Told:
    return [
        json.loads(Serde.to_json(event(kind, run, WHEN, reason)))
        for kind, run, reason in lineage.told
    ]


def of_a_link(_: Path) -> LineageList:
    made = MemoryLink()
    product = made.harness.image.catalog["east.users"]
    catalog = made.harness.image.catalog.set(
        product.id, replace(product, schema_id=7, owner="team-users")
    )
    made.harness.image = made.harness.image._replace(catalog=catalog)
    made.schema = USER
    made.settle()
    made.engine.queries[-1].fault = "the disk is full"
    made.settle()
    made.harness.pause()
    made.settle()
    return made.lineage


def of_a_statement(_: Path) -> LineageList:
    made = MemoryStatement()
    made.settle()
    made.engine.queries[-1].fault = "the disk is full"
    made.settle()
    made.harness.direct(Desired.PAUSED)
    made.settle()
    return made.lineage


def of_a_source(folder: Path) -> LineageList:
    return _of_a_connector(folder, story.connector()["config"])


def of_a_sink(folder: Path) -> LineageList:
    return _of_a_connector(folder, SINK)


def _of_a_connector(folder: Path, config: dict[str, str]) -> LineageList:
    made = MemoryConnector(folder)
    made.controller.schema_text = lambda _: USER
    made.say(connectors.ConnectorAdded, config=config)
    made.look(times=3)
    made.api.fail(NAME, "org.A: the disk is full")
    made.look(times=3)
    made.api.mend(NAME)
    made.look(times=10)
    made.say(connectors.ConnectorStopped)
    made.look(times=3)
    return made.lineage


@pytest.fixture(params=[of_a_link, of_a_statement, of_a_source, of_a_sink])
def told(request: pytest.FixtureRequest, tmp_path: Path) -> Told:
    return events(request.param(tmp_path))


def named(found: dict[str, Any], name: str) -> dict[str, Any]:
    """The facets of the dataset with this name."""
    datasets = [*found["inputs"], *found["outputs"]]
    return next(one["facets"] for one in datasets if one["name"] == name)


def owner(facets: dict[str, Any]) -> str:
    return facets["ownership"]["owners"][0]["name"]


def test_every_event_conforms_to_openlineages_schemas(told: Told) -> None:
    assert {found["eventType"] for found in told} == EVERY
    for found in told:
        assert openlineage.findings(found) == []


def test_every_event_tells_its_datasets_source_and_who_answers_for_the_job(told: Told) -> None:
    for found in told:
        assert owner(found["job"]["facets"]).startswith("team-")
        for dataset in (*found["inputs"], *found["outputs"]):
            assert dataset["facets"]["dataSource"]["uri"] == dataset["namespace"]
            if dataset["namespace"].startswith("kafka:"):
                assert owner(dataset["facets"]) in {"team-east", "team-users"}


def test_a_link_has_its_products_schema_and_owner_in_every_event(tmp_path: Path) -> None:
    for found in events(of_a_link(tmp_path)):
        assert owner(found["job"]["facets"]) == "team-users"
        for dataset in (*found["inputs"], *found["outputs"]):
            fields = dataset["facets"]["schema"]["fields"]
            assert [(one["name"], one["type"]) for one in fields] == [("id", "null | long")]
            assert owner(dataset["facets"]) == "team-users"


def test_a_connectors_tables_and_topics_are_named_as_openlineage_does(tmp_path: Path) -> None:
    (captured,) = events(of_a_source(tmp_path / "source"))[0]["inputs"]
    assert (captured["namespace"], captured["name"]) == (
        "postgres://db.invalid:5432",
        "shop.public.orders",
    )
    filling = events(of_a_sink(tmp_path / "sink"))[0]
    table = filling["outputs"][0]
    assert (table["namespace"], table["name"]) == (
        "postgres://db.invalid:5432",
        "reports.public.east_users",
    )
    assert [one["name"] for one in filling["outputs"][1:]] == ["east.shop.dead"]
    assert named(filling, "east.users")["schema"]["fields"][0]["name"] == "id"


def test_a_statements_result_tells_its_columns_and_its_sql(tmp_path: Path) -> None:
    start = events(of_a_statement(tmp_path))[0]
    assert start["job"]["facets"]["sql"]["query"] == f"SELECT ip FROM {STREAM}"
    assert list(named(start, OUT)["columnLineage"]["fields"]) == ["ip"]
    assert named(start, OUT)["schema"]["fields"][0]["name"] == "ip"
    assert "schema" not in named(start, DEAD)


def joining() -> JobRun:
    """A statement with a join, a filter and a column that is made of nothing."""
    return JobRun(
        namespace="mesh.statements",
        job="east.seen",
        run="0190163d-8694-739b-aea5-966c26f8ad91",
        kind="SQL",
        inputs=(Dataset("east.test:9092", STREAM, USER, "team-east"),),
        outputs=(Dataset("east.test:9092", OUT, USER, "team-east"),),
        tags={},
        sql=f"SELECT c.id, 1 AS one FROM {STREAM} c",
        columns={"id": (Origin(STREAM, "id"),), "one": ()},
        decides=(Origin(STREAM, "id", "INDIRECT", "JOIN"),),
    )


def joined() -> dict[str, Any]:
    """The event of its start."""
    return json.loads(Serde.to_json(event(RunState.START, joining(), WHEN)))


def wide(columns: int) -> JobRun:
    """The statement over a schema of very many columns."""
    fields = [{"name": f"{'column' * 50}{one}", "type": "int"} for one in range(columns)]
    schema = json.dumps({"type": "record", "name": "Wide", "fields": fields})
    run, names = joining(), [one["name"] for one in fields]
    return replace(
        run,
        inputs=tuple(replace(one, schema=schema) for one in run.inputs),
        outputs=tuple(replace(one, schema=schema) for one in run.outputs),
        columns={name: (Origin(STREAM, name),) for name in names},
    )


@pytest.mark.parametrize(
    ("columns", "without", "facets"),
    [
        (100, "", {"schema", "columnLineage"}),
        (900, "schemas", {"columnLineage"}),
        (3000, "schemas and columns", set()),
    ],
)
def test_an_event_that_is_too_large_tells_the_run_without_columns(
    columns: int, without: str, facets: set[str]
) -> None:
    value, left_out = fitting(RunState.START, wide(columns))
    found = json.loads(value)
    assert left_out == without
    assert len(value) <= LARGEST_EVENT
    assert openlineage.findings(found) == []
    assert {"schema", "columnLineage"} & set(named(found, OUT)) == facets
    assert [one["name"] for one in found["inputs"]] == [STREAM]
    assert found["job"]["facets"]["sql"]["query"] == joining().sql


def described(doc: str) -> JobRun:
    """A run whose result's schema has JSON as the description of its field."""
    field = f'{{"name": "a", "type": "int", "doc": {doc}}}'
    schema = f'{{"type": "record", "name": "R", "fields": [{field}]}}'
    run = joining()
    [result] = run.outputs
    assert isinstance(result, Dataset)
    return replace(run, outputs=(replace(result, schema=schema),), columns={}, decides=())


@pytest.mark.parametrize("doc", ["5", "1e400", '{"a": 1}', "[[1]]", "null", "[" * 600 + "]" * 600])
def test_a_description_that_is_no_text_is_none(doc: str) -> None:
    value, left_out = fitting(RunState.START, described(doc))
    assert left_out == ""
    found = json.loads(value)
    assert openlineage.findings(found) == []
    assert [one.get("description") for one in named(found, OUT)["schema"]["fields"]] == [None]


@pytest.mark.parametrize(
    "schema", ["{", '{"type": "record", "name": "R"}', "[" * 3000 + "]" * 3000]
)
def test_a_schema_that_cannot_be_told_leaves_the_run_to_be_told(schema: str) -> None:
    run = described("null")
    [result] = run.outputs
    assert isinstance(result, Dataset)
    value, _ = fitting(RunState.START, replace(run, outputs=(replace(result, schema=schema),)))
    found = json.loads(value)
    assert openlineage.findings(found) == []
    assert "schema" not in named(found, OUT)


def test_a_join_and_a_column_made_of_nothing_conform() -> None:
    found = joined()
    assert openlineage.findings(found) == []
    columns = named(found, OUT)["columnLineage"]
    assert columns["fields"]["one"] == {"inputFields": []}
    assert columns["dataset"][0]["transformations"] == [{"type": "INDIRECT", "subtype": "JOIN"}]


BREAKS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a run that is no UUID": lambda one: one["run"].update(runId="run-1"),
    "a time without a zone": lambda one: one.update(eventTime="2026-03-01T12:00:00"),
    "an unknown state": lambda one: one.update(eventType="PAUSED"),
    "a job without a name": lambda one: one["job"].pop("name"),
    "a producer that is no URI": lambda one: one.update(producer="the mesh"),
    "an owner without a name": lambda one: named(one, OUT)["ownership"]["owners"][0].pop("name"),
    "a source that is no URI": lambda one: named(one, OUT)["dataSource"].update(uri="east"),
    "a field without a name": lambda one: named(one, OUT)["schema"]["fields"][0].pop("name"),
    "a column without inputs": lambda one: named(one, OUT)["columnLineage"]["fields"]["id"].pop(
        "inputFields"
    ),
    "SQL that is missing": lambda one: one["job"]["facets"]["sql"].pop("query"),
    "a facet without a producer": lambda one: named(one, OUT)["schema"].pop("_producer"),
    "a facet of another version": lambda one: named(one, OUT)["schema"].update(
        _schemaURL="https://openlineage.io/spec/facets/9-9-9/SchemaDatasetFacet.json#/$defs/x"
    ),
    "a facet under another name": lambda one: one["job"]["facets"].update(
        owners=one["job"]["facets"]["jobType"]
    ),
}


@pytest.mark.parametrize("what", BREAKS)
def test_what_does_not_conform_is_found(what: str) -> None:
    found = joined()
    BREAKS[what](found)
    assert openlineage.findings(found)


def test_a_schema_that_is_not_at_hand_is_never_fetched() -> None:
    found = joined()
    found["schemaURL"] = "https://openlineage.io/spec/9-9-9/OpenLineage.json#/$defs/RunEvent"
    with pytest.raises(Unresolvable):
        openlineage.findings(found)


def test_an_event_has_no_character_that_databases_refuse() -> None:
    """A domain may write it into a comment of its SQL, or into a schema."""
    text = "a\0b \\u0000 \\\0"
    run = JobRun("mesh.links", "x", str(uuid4()), "LINK", (), (), {"note": text})
    found = json.loads(encoded(RunState.RUNNING, run))
    [tag] = found["run"]["facets"]["tags"]["tags"]
    assert tag["value"] == "a\ufffdb \\u0000 \\\ufffd"
