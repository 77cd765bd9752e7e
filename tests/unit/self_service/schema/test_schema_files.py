"""Schemas in files: their language, what they refer to, and whether they may follow."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mesh_events.errors import InvalidValueError, RefusedError
from mesh_events.schema.compatibility import Field, Level
from mesh_events.schema.definition import Definition, Kind, Reference
from projections.image import EMPTY
from self_service.cli.schema import check as schema_check
from self_service.cli.schema import commands
from self_service.cli.schema.app import Written
from self_service.cli.schema.registry import Subjects as RegistrySubjects
from self_service.cli.schema.registry import Version
from self_service.cli.schema.subjects import kind_of, read_schema
from self_service.formats.schema import schema_from

JSON = '{"properties": {"n": {"type": "integer"}}}'
PROTO = 'syntax = "proto3"; message A { int64 n = 1; }'


@pytest.mark.parametrize(
    ("name", "said", "kind"),
    [
        ("a.avsc", None, Kind.AVRO),
        ("a.json", None, Kind.JSON),
        ("a.PROTO", None, Kind.PROTOBUF),
        ("a.txt", None, Kind.AVRO),
        ("a.json", Kind.AVRO, Kind.AVRO),
    ],
)
def test_a_files_name_tells_its_language_unless_it_is_said(
    name: str, said: Kind | None, kind: Kind
) -> None:
    assert kind_of(Path(name), said) is kind


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.json", "{", r"a\.json is not a valid JSON Schema: it is not JSON"),
        ("a.json", '{"type": "record", "fields": []}', "an Avro schema is a file .avsc"),
        (
            "a.proto",
            "message {",
            r"a\.proto is not a valid Protobuf schema: .*Expected message name",
        ),
        (
            "a.proto",
            'syntax = "proto3";\nimport "b/c.proto";\nimport "google/protobuf/any.proto";',
            "b/c.proto is not among the references",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_the_next_step(
    name: str, text: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidValueError, match=why):
        read_schema(tmp_path / name)


def test_a_pattern_in_a_union_of_several_types_is_refused_before_it_is_registered(
    tmp_path: Path,
) -> None:
    kind = {"type": "string", "logicalType": "validatedString", "pattern": "a"}
    fields = [{"name": "s", "type": ["null", "int", kind]}]
    path = tmp_path / "a.avsc"
    path.write_text(json.dumps({"type": "record", "name": "R", "fields": fields}))
    with pytest.raises(RefusedError, match=r"a\.avsc: the pattern of s ") as refused:
        read_schema(path)
    assert refused.value.code == "unsupported_pattern"


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.proto").write_bytes(b"\xff")
    with pytest.raises(InvalidValueError, match="not UTF-8"):
        read_schema(tmp_path / "a.proto")


def test_a_file_keeps_the_references_that_it_still_names(tmp_path: Path) -> None:
    path = tmp_path / "a.proto"
    path.write_text('syntax = "proto3"; import "b.proto"; message A { B b = 1; }')
    kept, gone = Reference("b.proto", "b", 3), Reference("c.proto", "c", 1)
    before = Definition(Kind.PROTOBUF, "", (kept, gone))
    registry: Any = SimpleNamespace(
        imports=lambda _: {"b.proto": 'syntax = "proto3"; message B {}'}
    )
    assert read_schema(path, None, registry, before).references == (kept,)
    with pytest.raises(InvalidValueError, match="not among the references"):
        read_schema(path, None, registry, Definition(Kind.JSON, "", (kept,)))


def test_references_that_are_told_come_to_those_that_are_known(tmp_path: Path) -> None:
    """What is told again, such as a later version, takes the place of what was known."""
    path = tmp_path / "a.avsc"
    fields = [{"name": "m", "type": "Money"}, {"name": "t", "type": "tax.Vat"}]
    schema = {"type": "record", "name": "A", "namespace": "acme", "fields": fields}
    path.write_text(json.dumps(schema))
    money, later = (Reference("acme.Money", "money", number) for number in (1, 2))
    vat, gone = Reference("tax.Vat", "vat", 1), Reference("acme.Gone", "gone", 1)
    texts = {
        one: json.dumps({"type": "fixed", "size": 1, "name": one})
        for one in ("acme.Money", "tax.Vat")
    }
    registry: Any = SimpleNamespace(imports=lambda _: texts)
    before = Definition(Kind.AVRO, "", (money, gone))
    assert read_schema(path, None, registry, before, [vat]).references == (money, vat)
    assert read_schema(path, None, registry, before, [vat, later]).references == (later, vat)
    with pytest.raises(
        InvalidValueError, match=r"a\.avsc is not a complete Avro schema: .*--reference"
    ):
        read_schema(path)


class Subjects:
    """A registry with one version of one subject."""

    def __init__(self, schema: Definition, refusal: str | None) -> None:
        self._schema, self._refusal = schema, refusal

    def draft(self, _: str, path: Path, kind: Kind | None, references: Any = ()) -> Definition:
        return read_schema(path, kind, references=references)

    def numbers(self, _: str) -> list[int]:
        return [1]

    def version(self, subject: str, number: int) -> Version:
        return Version(subject, number, 7, self._schema)

    def level(self, _: str) -> Level:
        return Level.FORWARD_TRANSITIVE

    def refusal(self, _: str, number: int, draft: Definition) -> str | None:
        assert (number, draft.kind) == (1, self._schema.kind)
        return self._refusal

    def whole(self, _: str, schema: Definition) -> str:
        return schema.text

    def fields(self, _: str, schema: Definition) -> list[Field]:
        return schema_from(schema.kind, schema.text, {}).fields()


def check(
    path: Path, schema: Definition, refusal: str | None, level: Level | None = None
) -> schema_check.Outcome:
    registry: Any = Subjects(schema, refusal)
    return schema_check.checked(EMPTY, registry, path, "t-value", level)


@pytest.fixture
def proto(tmp_path: Path) -> Path:
    path = tmp_path / "t.proto"
    path.write_text(PROTO.replace("int64 n", "string n").replace("}", "bool m = 2; }"))
    return path


def test_the_registry_judges_other_languages_than_avro(proto: Path) -> None:
    before = Definition(Kind.PROTOBUF, PROTO)
    found = check(proto, before, None)
    assert (found.found, found.level, found.against) == ((), Level.FORWARD_TRANSITIVE, (1,))
    [(number, told)] = check(proto, before, "FIELD_TYPE_CHANGED at n").found
    assert number == 1
    assert str(told) == "the value: FIELD_TYPE_CHANGED at n (old readers of new records)"
    [(_, told)] = check(proto, before, "").found
    assert "gives no reason; what changed: m added; n from int64 = 1 to string = 1" in str(told)


def test_a_level_is_for_avro_alone(proto: Path) -> None:
    before = Definition(Kind.PROTOBUF, PROTO)
    assert not check(proto, before, None, Level.FORWARD_TRANSITIVE).found
    with pytest.raises(InvalidValueError, match="the subject's own level, FORWARD_TRANSITIVE"):
        check(proto, before, None, Level.FULL)


@pytest.mark.parametrize("kind", [Kind.AVRO, Kind.JSON])
def test_a_subject_keeps_its_language(proto: Path, kind: Kind) -> None:
    with pytest.raises(InvalidValueError, match=f"holds {kind}, and the file is PROTOBUF"):
        check(proto, Definition(kind, JSON), None)


def test_avro_is_still_compared_here(tmp_path: Path) -> None:
    path = tmp_path / "t.avsc"
    path.write_text(json.dumps("long"))
    [(_, told)] = check(path, Definition(Kind.AVRO, '"string"'), None, Level.BACKWARD).found
    assert "string was written, long is read" in str(told)


@pytest.mark.parametrize("name", ["../x", "..", "a/../b", "a\\..\\b", "./x", "a\x00b"])
def test_a_name_that_leads_elsewhere_is_refused_before_the_registry_is_asked(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile: Any = SimpleNamespace(profile=SimpleNamespace(registry_url="http://127.0.0.1:1"))
    monkeypatch.setattr(RegistrySubjects, "_ask", lambda *_: pytest.fail("the registry was asked"))
    with pytest.raises(InvalidValueError, match="cannot be a subject"):
        RegistrySubjects(profile).subject(name)


def test_a_file_that_cannot_be_compared_is_a_failure_that_names_it(tmp_path: Path) -> None:
    path = Path("a.json")
    told = InvalidValueError("the registry refuses the schema: Invalid \x00\x1b")
    out = tmp_path / "schemas.xml"
    schema_check.write_junit(out, [schema_check.faulty(path, "a\x01-value", told)])

    suite = ET.parse(out).getroot()  # noqa: S314 - it was written just now
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "0")
    [failure] = suite.iter("failure")
    assert (failure.get("message") or "").startswith("a.json: the registry refuses the schema")


def test_a_file_that_cannot_be_compared_does_not_stop_the_others(
    tmp_path: Path,
) -> None:
    bad, good = tmp_path / "bad.avsc", tmp_path / "good.avsc"
    bad.write_text("{")
    good.write_text('"string"')
    registry: Any = SimpleNamespace(
        subject=lambda name, *, key: f"{name}-{key}",
        draft=lambda _, path, kind, __: read_schema(path, kind),
        numbers=lambda _: [],
        level=lambda _: Level.NONE,
    )
    found = [
        commands._outcome(EMPTY, registry, one, one.stem, Written(), None, ())
        for one in (bad, good)
    ]
    assert [bool(one.fault) for one in found] == [True, False]
    with pytest.raises(InvalidValueError, match=r"bad\.avsc"):
        commands._require_usable(found)


def compared(registry: Any) -> list[schema_check.Outcome]:
    """Outcomes of two files; the registry is asked for the first one's name first."""
    return [
        commands._outcome(EMPTY, registry, Path(f"{one}.avsc"), one, Written(), None, ())
        for one in ("odd", "good")
    ]


def test_a_file_that_the_mesh_refuses_is_told_with_its_code_beside_the_others() -> None:
    def draft(subject: str, *_: Any) -> Definition:
        if subject == "odd":
            raise RefusedError("unsupported_pattern", "the pattern of a looks back")
        return Definition(Kind.AVRO, '"string"')

    registry: Any = SimpleNamespace(
        subject=lambda name, **_: name,
        draft=draft,
        numbers=lambda _: [],
        level=lambda _: Level.NONE,
    )
    found = compared(registry)
    assert [bool(one.fault) for one in found] == [True, False]
    with pytest.raises(RefusedError, match=r"odd\.avsc: the pattern of a looks back") as told:
        commands._require_usable(found)
    assert told.value.code == "unsupported_pattern"


def test_a_refusal_that_is_not_about_a_file_ends_the_check() -> None:
    def denied(*_: Any) -> Definition:
        raise RefusedError("registry_denied", "the login may not read it")

    registry: Any = SimpleNamespace(subject=lambda name, **_: name, draft=denied)
    with pytest.raises(RefusedError, match="may not read"):
        compared(registry)
