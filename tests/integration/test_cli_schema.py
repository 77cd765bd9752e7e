"""`sdm schema` on a running mesh, and the rules of compatibility held against a real registry."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import requests
from typer.testing import CliRunner

from local_platform import Endpoints, PlatformSettings
from mesh_events.references import resolve
from mesh_events.schema.compatibility import Level, breaks
from self_service.cli.app import app
from self_service.cli.framework.exits import ExitCode
from tests.mesh_fixtures import kit
from tests.mesh_kit import Domain, Mesh, fresh, register_schema
from tests.unit.mesh_events.schema.test_breaks import BACKWARD_ONLY, FULL, NEITHER, field, record

__all__ = ["kit"]
pytestmark = pytest.mark.platform

Sdm = Callable[..., tuple[int, Any, str]]
A, B = field("a", "int"), field("b", "string")
CASES = [(old, new) for old, new, *_ in (*FULL, *BACKWARD_ONLY, *NEITHER)]
OURS = (
    *("aliases", '"scale": 3', "timestamp-micros", "time-micros", "MicroTimestamp"),
    *("timestamp-millis", '"date"', "time.Date"),
    *('"moved"', '"digits"', '"several"'),
)
"""In what we differ: a field's new name is read by Avro, and a missing field to the registry;
another scale of a decimal makes another number, another unit another time, as a plain number does,
and another position in a union another branch, as a value by itself does, and a long has digits
that a double has not; the registry does not mind."""


@pytest.fixture
def sdm(settings: PlatformSettings) -> Sdm:
    """Run `sdm schema ...`; the exit code, the answer, and what was said beside it."""

    def run(*arguments: str) -> tuple[int, Any, str]:
        variables = {"SDM_HOME": str(settings.home), "SDM_DOMAIN": None}
        done = CliRunner().invoke(app, ["schema", *arguments, "-o", "json"], env=variables)
        assert "Traceback" not in done.stderr
        return done.exit_code, json.loads(done.stdout or "null"), done.stderr

    return run


@pytest.fixture(scope="module")
def owner(kit: Mesh) -> Domain:
    return kit.register_domain("schemacli")


def file(folder: Path, name: str, schema: Any) -> str:
    path = folder / name
    path.write_text(json.dumps(schema), "utf-8")
    return str(path)


def set_level(ends: Endpoints, subject: str, level: str) -> None:
    login = (ends.registry_user, resolve(ends.registry_password))
    url = f"{ends.registry_url}/config/{subject}"
    requests.put(url, json={"compatibility": level}, auth=login, timeout=10).raise_for_status()


@pytest.mark.parametrize("level", [Level.BACKWARD, Level.FORWARD, Level.FULL])
def test_our_rules_say_what_the_registry_says(platform: Endpoints, level: Level) -> None:
    login = (platform.registry_user, resolve(platform.registry_password))
    differ = []
    for old, new in CASES:
        subject = f"{fresh('rules')}-value"
        register_schema(platform, subject, json.dumps(old))
        set_level(platform, subject, level)
        url = f"{platform.registry_url}/compatibility/subjects/{subject}/versions/latest"
        asked = requests.post(url, json={"schema": json.dumps(new)}, auth=login, timeout=10)
        theirs = asked.json()["is_compatible"]
        if theirs != (not breaks(json.dumps(old), json.dumps(new), level)):
            differ.append((old, new, theirs))
    odd = [one for one in differ if not any(mark in json.dumps(one) for mark in OURS)]
    assert odd == []


def test_subjects_are_listed_and_described_with_their_products(
    kit: Mesh, owner: Domain, sdm: Sdm
) -> None:
    product, topic = owner.product()
    code, items, _ = sdm("list", topic)
    assert code == ExitCode.OK
    [found] = [one for one in items if one["subject"] == f"{topic}-value"]
    assert found["products"] == [product]
    assert found["version"] == 1
    code, told, _ = sdm("describe", topic)
    assert (code, told["subject"], told["versions"]) == (ExitCode.OK, f"{topic}-value", [1])
    code, _, said = sdm("describe", topic, "--version", "7")
    assert code == ExitCode.NOT_FOUND
    assert "has no version 7: there are 1" in said
    code, _, said = sdm("describe", "nowhere.x")
    assert code == ExitCode.NOT_FOUND
    assert "no subject nowhere.x-value" in said


def test_versions_and_files_are_compared_field_by_field(
    platform: Endpoints, kit: Mesh, sdm: Sdm, tmp_path: Path
) -> None:
    topic = f"schemas.{fresh('diff')}"
    wider = record(field("a", "long", doc="how many"), field("b", "string", default="x"))
    for schema in (record(A), wider):
        register_schema(platform, f"{topic}-value", json.dumps(schema))
    expected = [
        {"field": "a", "change": "changed", "before": "int", "after": "long"},
        {"field": "b", "change": "added", "before": None, "after": 'string = "x"'},
    ]
    assert sdm("diff", topic)[1] == expected
    assert sdm("diff", topic, "--from", "1", "--to", "2")[1] == expected
    assert sdm("diff", topic, file(tmp_path, "x.avsc", wider))[1] == []
    assert sdm("describe", topic)[1]["fields"] == [
        {"field": "a", "type": "long", "doc": "how many"},
        {"field": "b", "type": 'string = "x"', "doc": None},
    ]
    code, _, said = sdm("diff", topic, "--to", "1")
    assert code == ExitCode.NOT_FOUND
    assert "has no version before 1" in said


def test_a_break_is_told_with_its_field_and_fails_the_pull_request(
    platform: Endpoints, kit: Mesh, sdm: Sdm, tmp_path: Path
) -> None:
    topic = f"schemas.{fresh('check')}"
    register_schema(platform, f"{topic}-value", json.dumps(record(A)))
    set_level(platform, f"{topic}-value", "BACKWARD")
    good = file(tmp_path, f"{topic}.avsc", record(A, field("b", "string", default="x")))
    bad = file(tmp_path, f"{topic}-value.avsc", record(A, B))
    first = file(tmp_path, f"{fresh('new')}.avsc", record(A))
    junit = tmp_path / "junit.xml"

    code, items, _ = sdm("check", good, first)
    assert code == ExitCode.OK
    assert [one["outcome"] for one in items] == ["may follow", "is the first"]
    code, _, said = sdm("check", good, first, "--junit", str(junit))
    assert code == ExitCode.OK
    suite = ET.parse(junit).getroot()  # noqa: S314 - our own file
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")
    code, _, said = sdm("check", good, first, "--junit", str(junit), "--strict")
    assert code == ExitCode.NOT_FOUND
    assert f"nothing was compared for {Path(first).stem}-value: " in said
    suite = ET.parse(junit).getroot()  # noqa: S314 - our own file
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "0")
    assert sdm("check", good, "--strict")[0] == ExitCode.OK

    code, items, said = sdm("check", good, bad, "--junit", str(junit))
    assert code == ExitCode.REFUSED
    assert "refused (incompatible_schema)" in said
    assert "b: it was not written and has no default" in said
    assert [one["outcome"] for one in items] == ["may follow", "breaks"]
    suite = ET.parse(junit).getroot()  # noqa: S314 - our own file
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    [failure] = suite.iter("failure")
    assert "version 1: b: " in (failure.text or "")

    assert sdm("check", bad, "--level", "FORWARD")[0] == ExitCode.OK
    assert sdm("check", good, bad, "--subject", topic)[0] == ExitCode.USAGE
    code, _, said = sdm("check", str(tmp_path / "none.avsc"))
    assert code == ExitCode.USAGE
    assert "none.avsc: No such file" in said
    code, _, said = sdm("check", file(tmp_path, "odd.avsc", {"type": "recrod"}))
    assert code == ExitCode.USAGE
    assert "odd.avsc is not a valid Avro schema" in said


def test_a_published_products_schema_stays_full_and_its_readers_are_named(
    kit: Mesh, owner: Domain, sdm: Sdm, tmp_path: Path
) -> None:
    product, topic = owner.product()
    reader = kit.register_domain("schemaread").application("app")
    owner.grant(product, reader.domain.request(product, reader.name), active=False)
    narrower = file(tmp_path, "x.avsc", "bytes")
    code, [told], _ = sdm("check", narrower, "--subject", topic)
    assert told["compatibility"] == "FULL"
    assert told["consumers"] == [reader.name]
    assert code == ExitCode.OK
    code, [told], _ = sdm("check", file(tmp_path, "y.avsc", "long"), "--subject", topic)
    assert code == ExitCode.REFUSED
    assert {one["who"] for one in told["breaks"]} == {
        "new readers of old records",
        "old readers of new records",
    }
