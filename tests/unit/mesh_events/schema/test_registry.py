"""What the registry's client is asked, and what is made of its answers; no server."""

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference
from confluent_kafka.schema_registry.error import SchemaRegistryError

from mesh_events.errors import InfrastructureError, InvalidValueError, RefusedError
from mesh_events.schema.definition import Definition, Kind, Reference
from mesh_events.schema.registry import MOST_IMPORTED, Registry
from mesh_events.schema.size import MOST_TOGETHER, MOST_VERSIONS, SchemaTooLargeError


class Client:
    """Subjects with their versions, the first with id 1."""

    def __init__(self, subjects: Mapping[str, list[Schema]]) -> None:
        self._subjects = subjects

    def get_versions(self, subject: str) -> list[int]:
        return list(range(1, len(self._known(subject)) + 1))

    def clear_caches(self) -> None:
        """Nothing is remembered."""

    def get_version(self, subject: str, number: int | str) -> Any:
        if isinstance(number, str):
            number = len(self._known(subject))
        if number > len(self._known(subject)):
            raise SchemaRegistryError(404, 40402, "no such version")
        schema = self._known(subject)[number - 1]
        return SimpleNamespace(schema=schema, schema_id=number, version=number)

    def lookup_schema(self, subject: str, schema: Schema) -> Any:
        texts = [one.schema_str for one in self._known(subject)]
        if schema.schema_str not in texts:
            raise SchemaRegistryError(404, 40403, "no such schema")
        return SimpleNamespace(schema_id=texts.index(schema.schema_str) + 1)

    def register_schema(self, subject: str, schema: Schema) -> int:
        raise SchemaRegistryError(409, 409, f"{subject}: {schema.schema_type} is incompatible")

    def get_schema(self, schema_id: int) -> Schema:
        return next(iter(self._subjects.values()))[schema_id - 1]

    def _known(self, subject: str) -> list[Schema]:
        if subject not in self._subjects:
            raise SchemaRegistryError(404, 40401, "no such subject")
        return self._subjects[subject]


def registry(**subjects: list[Schema]) -> Registry:
    found = Registry("http://127.0.0.1:9")
    found._client = Client({name.replace("__", "-"): one for name, one in subjects.items()})
    return found


AVRO, PROTO = Schema('"string"', None), Schema("message A {}", "PROTOBUF")


def test_versions_are_of_avro_alone() -> None:
    assert registry(t__value=[AVRO]).versions("t-value") == {1: '"string"'}
    assert registry(t__value=[AVRO]).versions("gone-value") == {}
    for versions in ([PROTO], [PROTO, AVRO], [AVRO, PROTO]):
        with pytest.raises(RefusedError, match="values of t are PROTOBUF") as told:
            registry(t__value=versions).versions("t-value")
        assert told.value.code == "unsupported_schema"
    with pytest.raises(RefusedError, match="keys of a-b are JSON and PROTOBUF"):
        registry(a__b__key=[PROTO, Schema("{}", "JSON")]).versions("a-b-key")


@pytest.mark.parametrize("each", [4, 100])
def test_the_versions_of_a_subject_refer_to_so_many_others_together(each: int) -> None:
    count = 6
    named = [
        [SchemaReference(f"n{one}", "shared", one) for one in range(first, first + each)]
        for first in range(1, count * each + 1, each)
    ]
    versions = [Schema('"string"', "AVRO", references) for references in named]
    found = registry(t__value=versions, shared=[AVRO] * count * each)
    if count * each <= MOST_IMPORTED:
        assert found.versions("t-value")
    else:
        with pytest.raises(SchemaTooLargeError, match="more than 500 others"):
            found.versions("t-value")
    # to one alone the others are nothing
    [first, *_] = found.history("t-value")
    assert len(found.imports(first.schema)) == each


def test_what_a_registry_has_now_counts_and_not_what_its_client_remembers() -> None:
    versions = {1: (10, '"string"')}

    def get(path: str, query: object = None) -> Any:
        del query
        last = path.rpartition("/")[2]
        if last == "versions":
            return sorted(versions)
        number = max(versions) if last == "latest" else int(last)
        schema_id, text = versions[number]
        return {"subject": "t-value", "version": number, "id": schema_id, "schema": text}

    found = Registry("http://127.0.0.1:9")
    found._client._rest_client.get = get
    assert found.latest("t-value") == (10, 1)
    assert [one.schema_id for one in found.history("t-value")] == [10]
    versions[1] = (20, '"bytes"')
    assert found.versions("t-value") == {20: '"bytes"'}
    versions[2] = (21, '"int"')
    assert found.latest("t-value") == (21, 2)


@pytest.mark.parametrize(
    "versions",
    [
        [Schema('"string"', None)] * (MOST_VERSIONS + 1),
        [Schema(f'"{"x" * (MOST_TOGETHER // 2)}"', None)] * 2,
    ],
)
def test_a_subject_with_more_versions_than_are_compared_is_refused(versions: list[Schema]) -> None:
    for reading in (registry(t__value=versions).history, registry(t__value=versions).versions):
        with pytest.raises(RefusedError, match=f"t-value has {len(versions)} versions: at") as told:
            reading("t-value")
        assert told.value.code == "too_many_versions"
    # it would not be known whether the result means what the latest one does
    with pytest.raises(RefusedError, match="versions: at most"):
        registry(t__value=versions).register_text("t-value", '"bytes"')


def test_what_versions_refer_to_counts_as_well() -> None:
    large = json.dumps({"type": "enum", "name": "E", "symbols": ["x" * (MOST_TOGETHER // 10)]})
    one = Schema('{"type": "array", "items": "E"}', "AVRO", [SchemaReference("E", "e-value", 1)])
    found = registry(e__value=[Schema(large, None)], t__value=[one] * 11)
    assert len(found.history("t-value")) == 11
    with pytest.raises(RefusedError, match="t-value has 11 versions") as told:
        found.versions("t-value")
    assert told.value.code == "too_many_versions"


def test_a_schema_that_breaks_another_is_refused_with_its_fields() -> None:
    def record(kind: str) -> str:
        return json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]})

    found = registry(t__value=[Schema(record("int"), "AVRO")], p__value=[PROTO])
    with pytest.raises(RefusedError, match=r"ones of t-value: a: ") as told:
        found.register_text("t-value", record("string"))
    assert told.value.code == "incompatible_schema"
    with pytest.raises(RefusedError, match=r"earlier ones of p-value$"):
        found.register_text("p-value", record("string"))


def test_a_result_that_registries_let_mean_something_else_is_refused() -> None:
    """A timestamp that is a plain long from now on: no registry compares what a number counts."""

    def of(kind: Any) -> str:
        return json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]})

    time = of({"type": "long", "logicalType": "timestamp-micros"})
    found = registry(t__value=[Schema(time, "AVRO")])
    found._client.register_schema = lambda *_: 7  # type: ignore[method-assign]
    with pytest.raises(RefusedError, match="latest schema of t-value: a: timestamp-micros") as told:
        found.register_text("t-value", of("long"))
    assert told.value.code == "incompatible_schema"
    assert found.register_text("t-value", time) == 1
    assert found.register_text("new-value", time) == 7
    # a schema that stands there already is registered by whoever goes on with it
    both = registry(t__value=[Schema(time, "AVRO"), Schema(of("long"), "AVRO")])
    assert both.register_text("t-value", time) == 1
    assert both.register_text("t-value", of("long")) == 2


class Counted(Client):
    """Takes what is registered, unless it is one of these; counts what it is asked."""

    def __init__(self, subjects: Mapping[str, list[Schema]], *refused: str) -> None:
        super().__init__(subjects)
        self.taken: dict[str, list[Schema]] = {name: [*one] for name, one in subjects.items()}
        self._subjects = self.taken
        self._refused, self.asked = refused, 0

    def __getattribute__(self, name: str) -> Any:
        if name in ("get_versions", "get_version", "lookup_schema", "register_schema"):
            self.asked += 1
        return super().__getattribute__(name)

    def register_schema(self, subject: str, schema: Schema) -> int:
        if schema.schema_str in self._refused:
            raise SchemaRegistryError(409, 409, "incompatible")
        self.taken.setdefault(subject, []).append(schema)
        return len(self.taken[subject])


def enum(number: int) -> str:
    return json.dumps({"type": "enum", "name": "E", "symbols": [f"s{number}"], "default": "s0"})


@pytest.mark.parametrize("refused", [(), tuple(enum(number) for number in range(49))])
def test_schemas_together_are_registered_with_as_many_requests_as_there_are(
    refused: tuple[str, ...],
) -> None:
    """Each of 500 that reads all that are there would take ten minutes."""
    texts = [json.dumps({"type": "fixed", "name": f"F{one}", "size": 1}) for one in range(50)]
    texts = [*refused, texts[-1]] if refused else texts
    found = registry()
    found._client = client = Counted({}, *refused)
    found.register_texts("t-key", texts)
    there = [one.schema_str for one in client.taken["t-key"]]
    assert there == [one for one in texts if one not in refused]
    # a refusal asks how many there are
    assert client.asked <= 2 * len(texts) + 1
    client.asked = 0
    found.register_texts("t-key", there)
    assert client.asked == len(there) + 1, "each version is read once, and none registered"
    client.asked = 0
    assert found.register_text("t-key", there[0]) == client.asked == 1


def test_of_schemas_together_the_last_one_has_to_be_taken() -> None:
    found = registry()
    found._client = client = Counted({}, '"int"', '"bytes"')
    found.register_texts("t-key", ['"int"', '"string"'])
    assert [one.schema_str for one in client.taken["t-key"]] == ['"string"']
    with pytest.raises(RefusedError, match="earlier ones of t-key") as told:
        found.register_texts("t-key", ['"string"', '"bytes"'])
    assert told.value.code == "incompatible_schema"


def test_a_schema_without_a_type_is_avro() -> None:
    found = registry(t=[AVRO, PROTO])
    assert found.definition(1) == Definition(Kind.AVRO, '"string"')
    assert found.definition(2) == Definition(Kind.PROTOBUF, "message A {}")
    assert found.avro_text(1) == found.schema_text(1) == '"string"'
    assert found.avro_text(2) is None


def test_imports_are_followed_and_end() -> None:
    there = SchemaReference("there", "there", 1)
    back = SchemaReference("back", "back", 2)
    found = registry(
        there=[Schema("1", "PROTOBUF", [back])],
        back=[Schema("old", "PROTOBUF"), Schema("2", "PROTOBUF", [there])],
    )
    start = Definition(Kind.PROTOBUF, "0", (Reference("there", "there", 1),))
    assert found.imports(start) == {"there": "1", "back": "2"}
    lost = Definition(Kind.PROTOBUF, "0", (Reference("x", "there", 9),))
    with pytest.raises(InfrastructureError, match="version 9 of there, which is x") as told:
        found.imports(lost)
    assert not told.value.retriable


def test_a_schema_that_refers_to_too_many_others_is_refused() -> None:
    chain = {
        f"s{one}": [Schema("{}", "JSON", [SchemaReference(f"s{one + 1}", f"s{one + 1}", 1)])]
        for one in range(200)
    }
    long = Schema('"' + "x" * 600_000 + '"', "JSON", [SchemaReference("other", "other", 1)])
    found = registry(**chain, long=[long], other=[long])
    for name in ("s0", "long"):
        schema = Definition(Kind.JSON, "{}", (Reference(name, name, 1),))
        with pytest.raises(RefusedError, match="refer to fewer") as refused:
            found.imports(schema)
        assert refused.value.code == "schema_too_large"


def test_avro_comes_with_all_that_it_refers_to() -> None:
    """Readers of a topic never see the references: what they get is whole."""
    money = Schema('{"type": "record", "name": "Money", "fields": []}', None)
    to_money = [SchemaReference("Money", "money", 1)]
    order = '{"type": "record", "name": "Order", "fields": [{"name": "price", "type": "%s"}]}'
    good, bad = (Schema(order % name, "AVRO", to_money) for name in ("Money", "Price"))
    found = registry(t__value=[good, bad], money=[money])
    whole = order.replace('"%s"', '{"type": "record", "name": "Money", "fields": []}')
    assert found.schema_text(1) == found.avro_text(1) == whole
    assert found.definition(1).text == order % "Money"
    with pytest.raises(InfrastructureError, match=r"schema 2 at .* type Price is defined neither"):
        found.avro_text(2)
    with pytest.raises(RefusedError, match="t-value: the type Price is defined neither") as told:
        found.versions("t-value")
    assert told.value.code == "schema_not_usable"
    assert registry(t__value=[good], money=[money]).versions("t-value") == {1: whole}


def test_one_name_for_two_versions_is_refused_in_any_order() -> None:
    """Else the order of the references would say how bytes are read."""
    item = Schema("{}", "AVRO", [SchemaReference("Money", "money", 1)])
    known = registry(money=[Schema("1", "AVRO"), Schema("2", "AVRO")], item=[item])
    both = [Reference("Money", "money", 2), Reference("Item", "item", 1)]
    for references in (both, both[::-1]):
        schema = Definition(Kind.AVRO, "{}", tuple(references))
        with pytest.raises(InvalidValueError, match=r"Money stands for version \d of money"):
            known.imports(schema)


def test_half_a_surrogate_pair_in_a_description_can_be_sent_on() -> None:
    """A domain's description is in what Spark, a topic or a file gets of a schema."""
    said = {"type": "string", "doc": "half \ud83d of an emoji"}
    spelled = json.dumps(said, ensure_ascii=False)
    registry = Registry("http://127.0.0.1:1")
    registry._client = Client({"t-value": [Schema(spelled, "AVRO")]})  # type: ignore[assignment]
    [text] = registry.versions("t-value").values()
    found = Definition.answered({"schema": spelled}).text
    for one in (text, found):
        assert json.loads(one.encode()) == said
