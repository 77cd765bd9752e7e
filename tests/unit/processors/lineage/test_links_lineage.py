import json
from dataclasses import replace
from datetime import UTC, datetime

from openlineage.client.event_v2 import RunState
from openlineage.client.serde import Serde

from mesh_events.errors import InfrastructureError
from mesh_events.meta import new_id
from processors.lineage.events import Datasets, event, link_run, schema_of
from tests.links.memory import MemoryLink

WHEN = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {
                "name": "after",
                "doc": "the row now",
                "type": [
                    "null",
                    {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "int"}]},
                ],
            },
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)


def told(kind: RunState, reason: str | None = None, schema: str | None = SCHEMA) -> dict:
    harness = MemoryLink().harness
    product, identity = harness.image.catalog["east.users"], harness.image.identity
    east = replace(identity.clusters["east"], bootstrap_servers="east.test:9092,other:1")
    image = harness.image._replace(
        catalog=harness.image.catalog.set(product.id, replace(product, schema_id=7)),
        identity=replace(identity, clusters=identity.clusters.set("east", east)),
    )
    datasets = Datasets(image, None if schema is None else lambda _: schema)
    run = link_run(harness.link, new_id(), datasets, "request-1")
    return json.loads(Serde.to_json(event(kind, run, WHEN, reason)))


def test_an_event_names_job_run_and_datasets_as_openlineage_does() -> None:
    found = told(RunState.START)
    assert found["eventType"] == "START"
    assert found["eventTime"].startswith("2026-03-01T12:00:00")
    assert (found["job"]["namespace"], found["job"]["name"]) == ("mesh.links", "east.users@west")
    assert found["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    (source,), (copy,) = found["inputs"], found["outputs"]
    assert (source["namespace"], source["name"]) == ("kafka://east.test:9092", "east.users")
    assert (copy["namespace"], copy["name"]) == ("kafka://west.test:9092", "east.users")
    tags = {tag["key"]: tag["value"] for tag in found["run"]["facets"]["tags"]["tags"]}
    assert tags == {"product": "east.users", "correlation": "request-1"}


def test_both_datasets_carry_the_products_fields() -> None:
    found = told(RunState.RUNNING)
    for dataset in (*found["inputs"], *found["outputs"]):
        after, at = dataset["facets"]["schema"]["fields"]
        assert (after["name"], after["type"]) == ("after", "null | Row")
        assert after["description"] == "the row now"
        assert [field["name"] for field in after["fields"]] == ["id"]
        assert (at["name"], at["type"]) == ("at", "timestamp-millis")


def test_a_product_without_a_known_schema_has_lineage_all_the_same() -> None:
    assert "schema" not in told(RunState.COMPLETE, schema=None)["inputs"][0]["facets"]

    def unreachable(_: int) -> str:
        raise InfrastructureError("the registry does not answer", retriable=True)

    assert schema_of(unreachable, 7) is None
    assert schema_of(lambda _: SCHEMA, 0) is None
    assert schema_of(lambda _: SCHEMA, 7) == SCHEMA
    # of a product whose records are Protobuf or JSON Schema
    assert schema_of(lambda _: None, 7) is None


def test_a_failure_carries_its_reason() -> None:
    found = told(RunState.FAIL, "the disk is full")
    assert found["run"]["facets"]["errorMessage"]["message"] == "the disk is full"


def test_the_environment_changes_nothing(monkeypatch) -> None:
    """An OpenLineage client would take a whole configuration from there."""
    before = told(RunState.START)
    for name in ("OPENLINEAGE_URL", "OPENLINEAGE_NAMESPACE", "OPENLINEAGE__TRANSPORT__TYPE"):
        monkeypatch.setenv(name, "elsewhere")
    after = told(RunState.START)
    assert after | {"run": None} == before | {"run": None}


def test_a_link_that_never_ran_tells_no_lineage() -> None:
    link = MemoryLink()
    link.engine.down = True
    link.settle()
    assert link.lineage.told == []
