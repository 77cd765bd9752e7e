"""What a connector's config says by itself."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from immutables import Map

from mesh_events.connectors import OWN_SECRET, SHARED_SECRET
from projections.connectors import transforms
from projections.connectors.config import (
    JDBC_SINK,
    POSTGRES,
    Table,
    captured,
    clash,
    filled,
    foreign_references,
    not_allowed,
    plain_secrets,
    read_anew,
    redacted,
    replaces_rows,
    tasks,
    unfit,
    writes,
)
from projections.connectors.tables import pinned, slot_of

SMT = "org.apache.kafka.connect.transforms"
OF_POSTGRES = {
    "connector.class": POSTGRES,
    "database.hostname": "db.test",
    "database.dbname": "shop",
    "database.password": OWN_SECRET,
    "table.include.list": "public.users, sales.orders",
    "topic.prefix": "east.shop",
    "transforms": "route",
    "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.route.regex": r"east\.shop\.[^.]+\.(.+)",
    "transforms.route.replacement": "east.$1",
}
SINK = {
    "connector.class": JDBC_SINK,
    "topics": "east.users,east.orders",
    "connection.url": "jdbc:postgresql://db.test:5432/reports",
    "primary.key.mode": "record_key",
    "insert.mode": "upsert",
    "connection.password": SHARED_SECRET,
}
TO = {"type": "org.apache.kafka.connect.transforms.TimestampConverter$Value", "field": "at"}
FOREIGN = [
    "${dir:/home/connectors/logins/west:west}",
    "${dir:/home/connectors:connector-east.shop}",
    "${file:/home/connectors/logins/west/west:password}",
    "${env:HOME}",
    "${SECRET:own}",
    "${secret:own",
    "${secret:west}",
    "${s\u0435cret:own}",
    f"{OWN_SECRET}{OWN_SECRET}",
    "${secret:own/}",
    "${secret:own/../spark}",
    "${secret:own/0123456789ABCDEF}",
    "${secret:own/0123456789abcdef0}",
    "${secret:shared/0123456789abcdef}",
    f"{OWN_SECRET} ",
    f"{OWN_SECRET}\n",
    f"x{OWN_SECRET}",
    "${${secret:own}}",
    "${",
    "a ${ b",
    "$${topic}{dir:/home/connectors:x}",
    "${topic${topic}:x}",
]


@pytest.mark.parametrize("value", FOREIGN)
@pytest.mark.parametrize("setting", ["database.password", "transforms.t.value.literal"])
def test_every_reference_but_the_two_is_refused(setting: str, value: str) -> None:
    assert foreign_references({**OF_POSTGRES, setting: value}) == [setting]


@pytest.mark.parametrize("value", [OWN_SECRET, "${secret:own/0123456789abcdef}", SHARED_SECRET])
@pytest.mark.parametrize(
    "setting", ["transforms.t.value.literal", "database.user", "DATABASE.PASSWORD", "topic.prefix"]
)
def test_a_secret_is_named_by_the_password_setting_only(setting: str, value: str) -> None:
    assert foreign_references(OF_POSTGRES) == foreign_references(SINK) == []
    assert foreign_references({**OF_POSTGRES, setting: value}) == [setting]


@pytest.mark.parametrize("name", [OWN_SECRET, "a${b", "${dir:/home/connectors/logins/west:west}"])
def test_a_reference_in_a_settings_name_is_refused(name: str) -> None:
    assert foreign_references({**OF_POSTGRES, name: "x"}) == [name]


@pytest.mark.parametrize("kind", ["", "PostgresConnector", "org.example.Other"])
def test_a_class_of_which_no_password_setting_is_known_may_name_no_secret(kind: str) -> None:
    config = {"connector.class": kind, "database.password": OWN_SECRET}
    assert foreign_references(config) == ["database.password"]


def test_what_a_sinks_tables_are_called_by_is_no_reference() -> None:
    named = {**SINK, "collection.name.format": "x_${topic}_${source.table}"}
    assert foreign_references(named) == []


@given(st.text(st.sampled_from("${}:topic dir/x"), max_size=30))
def test_what_connect_would_resolve_is_never_let_through(text: str) -> None:
    """Connect's own way: `${`, anything but `}`, a colon, anything but `}`, `}`."""
    at, resolved = text.find("${"), False
    while at >= 0:
        end = text.find("}", at)
        resolved = resolved or (end > 0 and ":" in text[at:end])
        at = text.find("${", at + 1)
    if resolved:
        assert foreign_references({"connector.class": JDBC_SINK, "a": text}) == ["a"]


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("database.password", "s3cret", True),
        ("database.password", OWN_SECRET, False),
        ("database.password", f"x{OWN_SECRET}", True),
        ("key.converter.basic.auth.user.info.token", "abc", True),
        ("database.user", "postgres", False),
        ("value.converter.basic.auth.user.info", "bob:pw", True),
        ("api.key", "abc", True),
        ("api-key", "abc", True),
        ("passwd", "abc", True),
        ("ssl.keystore.key", "abc", True),
        ("some.url", "https://bob:pw@registry.test/x", True),
        ("some.url", "https://registry.test/a:b@c", False),
        ("certificate", "-----BEGIN PRIVATE KEY-----", True),
    ],
)
def test_a_secret_is_never_shown_and_a_reference_is(name: str, value: str, *, hidden: bool) -> None:
    assert redacted({name: value})[name] == ("(hidden)" if hidden else value)
    assert plain_secrets({name: value}) == ([name] if hidden else [])


@pytest.mark.parametrize("value", ["://" + ":" * 5_000_000, "://a" * 1_000_000, ":" * 5_000_000])
def test_a_long_value_is_searched_for_secrets_in_one_pass(value: str) -> None:
    """In quadratic time this would take hours, and the run ends with a timeout."""
    assert plain_secrets({"a": value}) == []


def test_captured_tables_are_known_by_their_names_and_topics() -> None:
    assert captured(OF_POSTGRES) == [
        Table("postgres://db.test:5432", "shop.public.users", "east.users"),
        Table("postgres://db.test:5432", "shop.sales.orders", "east.orders"),
    ]
    assert writes(OF_POSTGRES) == ("east.users", "east.orders")
    assert captured({**OF_POSTGRES, "topic.prefix": ""}) == []


def test_filled_tables_are_known_where_their_names_follow_from_the_topics() -> None:
    place = "postgres://db.test:5432"
    assert filled(SINK) == [
        Table(place, "reports.public.east_users", "east.users"),
        Table(place, "reports.public.east_orders", "east.orders"),
    ]
    named = {**SINK, "topics": "east.users", "collection.name.format": "crm.people"}
    assert filled(named) == [Table(place, "reports.crm.people", "east.users")]
    routed = {"transforms": "r", "transforms.r.type": f"{SMT}.RegexRouter"}
    routed |= {"transforms.r.regex": r"east\.(.*)", "transforms.r.replacement": "$1"}
    assert [one.name for one in filled({**SINK, **routed})] == [
        "reports.public.users",
        "reports.public.orders",
    ]
    assert filled({**SINK, "collection.name.format": "${source.table}"}) == []
    assert filled({**SINK, "connection.url": "jdbc:oracle:thin:@x"}) == []


URL = SINK["connection.url"]


@pytest.mark.parametrize(
    "changed",
    [
        {"connection.url": f"{URL}?sslmode=require&currentSchema=a"},
        {"use.time.zone": "UTC"},
        {"collection.name.format": "crm.${topic}_x"},
    ],
)
def test_a_sink_may_say_where_it_writes(changed: dict[str, str]) -> None:
    assert unfit({**SINK, **changed}) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"connection.url": f"{URL}?socketFactory=org.example.X"},
        {"connection.url": f"{URL}?sslmode=require&socketFactory=org.example.X"},
        {"connection.url": "jdbc:postgresql://bob:s3cret@db.test/reports"},
        {"connection.url": "jdbc:mysql://db.test/reports"},
        {"connection.url": "jdbc:mariadb://db.test/reports"},
        {"connection.url": f"{URL}?useSSL=true"},
        {"connection.url": f"{URL}?currentSchema=reports.public"},
        {"connection.url": f"{URL}?currentSchema=a&currentSchema=reports.public"},
        {"connection.url": "jdbc:mysql://(host=evil,allowLoadLocalInfile=true)/db"},
        {"connection.url": "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'x'"},
        {"connection.url": "jdbc:oracle:thin:@config-https://evil.test"},
        {"connection.url": "jdbc:db2://h/db:traceFile=/x;"},
        {"collection.name.format": "x; DROP TABLE y"},
        {"use.time.zone": "Europe/Berlin"},
        {"database.time_zone": "Europe/Berlin"},
        {"connector.class": "JdbcSink"},
        {"connector.class": "JdbcSinkConnector"},
        {"connector.class": ""},
        {"name": "east.shop"},
    ],
)
def test_a_sink_says_nothing_that_loads_classes_and_is_called_in_full(
    changed: dict[str, str],
) -> None:
    assert unfit({**SINK, **changed})


SOURCE_REFUSED = [
    {"signal.enabled.channels": "file"},
    {"signal.file": "/etc/passwd"},
    {"signal.kafka.bootstrap.servers": "evil:9092"},
    {"driver.socketFactory": "org.example.X"},
    {"database.sslkey": "/x"},
    {"database.socketFactory": "org.postgresql.ssl.SingleCertValidatingFactory"},
    {"database.authenticationPluginClassName": "x.Y"},
    {"database.service": "x"},
    {"database.loggerFile": "/x"},
    {"database.initial.statements": "COPY t TO PROGRAM $$id$$"},
    {"database.hostname": "/var/run/postgresql"},
    {"database.hostname": "a,b"},
    {"database.hostname": "a?x=y"},
    {"database.hostname": ""},
    {"database.port": "0"},
    {"database.port": "65536"},
    {"database.dbname": "shop?socketFactory=x"},
    {"openlineage.integration.enabled": "true"},
    {"openlineage.integration.config.file.path": "/etc/passwd"},
    {"converters": "x"},
    {"x.type": "any.Class"},
    {"post.processors": "x"},
    {"slot.drop.on.stop": "true"},
    {"slot.failover": "true"},
    {"decimal.handling.mode": "double"},
    {"interval.handling.mode": "numeric"},
    {"time.precision.mode": "isostring"},
    {"snapshot.mode": "custom"},
    {"snapshot.mode.custom.name": "x"},
    {"snapshot.select.statement.overrides": "public.users"},
    {"value.converter": "io.apicurio.registry.utils.converter.AvroConverter"},
    {"value.converter.apicurio.registry.url": "http://169.254.169.254/"},
    {"notification.enabled.channels": "sink"},
    {"max.queue.size": "100000000"},
    {"max.queue.size.in.bytes": "0"},
    {"max.queue.size.in.bytes": "67108864"},
    {"max.batch.size": "99999999"},
    {"producer.override.batch.size": "2000000000"},
    {"topic.naming.strategy": "any.Class"},
    {"schema.history.internal.file.filename": "/x"},
    {"heartbeat.action.query": "DROP TABLE users"},
    {"errors.tolerance": "all"},
    {"skipped.operations": "none"},
    {"publication.autocreate.mode": "all_tables"},
    {"publication.name": "p FOR ALL TABLES; DROP TABLE x"},
    {"slot.name": "A"},
    {"plugin.name": "decoderbufs"},
    {"table.include.list": "public.a.b"},
    {"table.include.list": "orders"},
    {"table.include.list": 'public."Orders"'},
    {"column.exclude.list": "users.phone"},
    {"transforms": "f", "transforms.f.type": "io.debezium.transforms.Filter"},
    {"transforms.other.type": "org.apache.kafka.connect.transforms.RegexRouter"},
    {"transforms.route.regex": "(a+)+b"},
    {"transforms.route.regex": "(?=a)b"},
    {"transforms.route.regex": "(a)\\1"},
    {"transforms.route.regex": "a*a*b"},
    {"transforms.route.regex": "(a|a)" * 60 + "b"},
    {"transforms.route.regex": "a" * 251},
    {"transforms.route.replacement": "east.$1.$2"},
    {"transforms.route.replacement": "east.$1.$1"},
    {"transforms.route.replacement": "${routedByValue}"},
    {"transforms.route.predicate": "tombstone"},
    {"column.exclude.list": ",".join(f"a.b.c{number}" for number in range(201))},
    {"transforms.route.unknown": "x"},
]


@pytest.mark.parametrize("changed", SOURCE_REFUSED)
def test_a_source_may_not_have_what_is_not_on_its_list(changed: dict[str, str]) -> None:
    assert not_allowed(OF_POSTGRES) is None
    told = not_allowed({**OF_POSTGRES, **changed})
    assert told is not None
    assert next(iter(changed if "transforms" not in changed else ["transforms.f.type"])) in told


@pytest.mark.parametrize("config", [OF_POSTGRES, SINK])
@pytest.mark.parametrize("side", ["Key", "Value"])
@pytest.mark.parametrize("delimiter", [None, ".", "-", "_._"])
def test_flatten_makes_no_names_that_avro_does_not_have(
    config: dict[str, str], side: str, delimiter: str | None
) -> None:
    names = {"transforms": "flat", "transforms.flat.type": f"{SMT}.Flatten${side}"}
    given = {} if delimiter is None else {"transforms.flat.delimiter": delimiter}
    made = {**without_transforms(config), **names}
    told = not_allowed({**made, **given})
    assert told is not None
    assert told.startswith("transforms.flat.delimiter: it must be one to three '_'")
    for good in ("_", "__"):
        assert not_allowed({**made, "transforms.flat.delimiter": good}) is None
    converter = "org.apache.kafka.connect.json.JsonConverter"
    if config is OF_POSTGRES:
        assert not_allowed({**made, **given, f"{side.lower()}.converter": converter}) is None


def without_transforms(config: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in config.items() if not name.startswith("transforms")}


@pytest.mark.parametrize(
    "changed", [{"hibernate.connection.url": "jdbc:x"}, {"connection.provider": "org.example.X"},
                {"errors.tolerance": "all"}, {"batch.size": "2000000000"},
                {"value.converter": "org.apache.kafka.connect.json.JsonConverter"},
                {"key.converter": "org.apache.kafka.connect.json.JsonConverter"},
                {"value.converter": "io.apicurio.registry.utils.converter.ExtJsonConverter"},
                {"value.converter": "io.confluent.connect.protobuf.ProtobufConverter"},
                {"header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter"},
                {"primary.key.mode": "record_header"},
                {"primary.key.mode": "none"},
                {"primary.key.mode": "kafka"},
                {"insert.mode": "update"},
                {"dialect.postgres.unnest.insert.enabled": "true"}]
)  # fmt: skip
def test_a_sink_may_not_have_what_is_not_on_its_list(changed: dict[str, str]) -> None:
    assert not_allowed(SINK) is None
    assert next(iter(changed)) in str(not_allowed({**SINK, **changed}))


@pytest.mark.parametrize(
    "changed",
    [
        {"snapshot.mode": "no_data", "heartbeat.interval.ms": "10000"},
        {"heartbeat.action.query": "SELECT pg_logical_emit_message(false, 'beat', 'x')"},
        {"decimal.handling.mode": "string", "time.precision.mode": "connect"},
        {"column.exclude.list": "public.users.phone,sales.orders.note"},
        {"snapshot.max.threads": "1", "database.sslmode": "require"},
        {"table.include.list": "public.order lines,public.Zoë,a-b.x$y(z)"},
        {"producer.override.linger.ms": "5", "max.queue.size": "16384"},
        {
            "transforms": "route,row,mask",
            "transforms.row.type": "io.debezium.transforms.ExtractNewRecordState",
            "transforms.mask.type": f"{SMT}.MaskField$Value",
            "transforms.mask.fields": "phone",
            "transforms.mask.predicate": "users",
            "predicates": "users",
            "predicates.users.type": f"{SMT}.predicates.TopicNameMatches",
            "predicates.users.pattern": ".*users",
        },
    ],
)
def test_a_source_may_have_what_its_users_need(changed: dict[str, str]) -> None:
    assert not_allowed({**OF_POSTGRES, **changed}) is None


def test_a_capture_has_intervals_as_texts() -> None:
    assert pinned("east.shop", OF_POSTGRES)["interval.handling.mode"] == "string"


def test_a_shared_login_runs_no_statement_of_a_persons() -> None:
    query = {"heartbeat.action.query": "SELECT pg_logical_emit_message(false, 'beat', 'x')"}
    assert not_allowed({**OF_POSTGRES, **query}) is None
    assert "heartbeat.action.query" in str(not_allowed({**OF_POSTGRES, **query}, shared=True))


@pytest.mark.parametrize(
    ("setting", "value", "kept"),
    [
        ("snapshot.mode", "always", "initial"),
        ("snapshot.mode", "when_needed", "initial"),
        ("snapshot.max.threads", "4", "1"),
    ],
)
def test_a_capture_may_not_read_tables_so_that_rows_are_missing(
    setting: str, value: str, kept: str
) -> None:
    """One that has it already goes on, without it."""
    config = {**OF_POSTGRES, setting: value}
    assert setting in str(unfit(config))
    assert unfit({**OF_POSTGRES, setting: kept}) is None
    assert not_allowed(config) is None
    assert pinned("east.shop", config)[setting] == kept


def test_a_capture_reads_no_tables_anew_by_signals() -> None:
    """Debezium passes over what it fails to read of them, and tells nobody."""
    for setting in ("signal.data.collection", "incremental.snapshot.chunk.size"):
        config = {**OF_POSTGRES, setting: "public.signals"}
        assert setting in str(not_allowed(config))
        assert setting not in pinned("east.shop", config)


@pytest.mark.parametrize(
    "name", ["users", "Users", "a.b", "x$y", "order lines", "Zoë", "a(b)*+[c]|d"]
)
def test_a_captured_tables_name_is_a_pattern_that_matches_itself_alone(name: str) -> None:
    [found] = pinned("east.shop", {**OF_POSTGRES, "table.include.list": f"s.{name}"})[
        "table.include.list"
    ].split(",")
    assert found.startswith("(?-i)")
    plain = re.sub(r"\\x\{([0-9a-f]+)\}", lambda code: re.escape(chr(int(code[1], 16))), found[5:])
    assert re.fullmatch(plain, f"s.{name}")
    others = {f"s.{name.swapcase()}", f"sx{name}", f"s.{name}x"} - {f"s.{name}"}
    assert not [one for one in others if re.fullmatch(plain, one)]
    assert "${" not in found


def test_a_source_that_names_no_slot_gets_its_own() -> None:
    found = pinned("east.shop", OF_POSTGRES)
    assert (found["slot.name"], found["publication.name"]) == ("sdm_east_shop", "sdm_east_shop")
    assert found["publication.autocreate.mode"] == "filtered"


def test_what_a_source_holds_in_memory_is_bounded_in_bytes() -> None:
    """Debezium's default is no bound but that of 8192 rows, of any length."""
    assert pinned("east.shop", OF_POSTGRES)["max.queue.size.in.bytes"] == "8388608"
    own = {**OF_POSTGRES, "max.queue.size.in.bytes": "1048576"}
    assert pinned("east.shop", own)["max.queue.size.in.bytes"] == "1048576"


def test_changes_of_partitions_come_as_the_partitioned_tables() -> None:
    assert pinned("east.shop", OF_POSTGRES)["publish.via.partition.root"] == "true"
    off = {**OF_POSTGRES, "publish.via.partition.root": "false"}
    assert pinned("east.shop", off)["publish.via.partition.root"] == "true"
    assert "publish.via.partition.root" in str(not_allowed(off))


def test_a_snapshot_asks_for_few_rows_at_once() -> None:
    assert pinned("east.shop", OF_POSTGRES)["snapshot.fetch.size"] == "500"
    own = {**OF_POSTGRES, "snapshot.fetch.size": "20"}
    assert pinned("east.shop", own)["snapshot.fetch.size"] == "20"


def test_a_database_that_is_silent_fails_a_task_whatever_a_config_says() -> None:
    assert pinned("east.shop", OF_POSTGRES)["driver.socketTimeout"] == "3660"
    assert not_allowed({**OF_POSTGRES, "driver.socketTimeout": "0"}) is not None
    address = SINK["connection.url"]
    assert pinned("east.out", SINK)["connection.url"] == f"{address}?socketTimeout=600"
    own = {**SINK, "connection.url": f"{address}?currentSchema=a"}
    assert pinned("east.out", own)["connection.url"].endswith("?currentSchema=a&socketTimeout=600")
    wrong = {**SINK, "connection.url": f"{address}?socketTimeout=0"}
    assert "socketTimeout" in str(unfit(wrong))


def test_a_source_fails_at_rows_that_are_not_whole_before_any_other_transform() -> None:
    own = {**OF_POSTGRES, "transforms": "a,b", "unavailable.value.placeholder": "not_there"}
    found, plain = pinned("east.shop", own), pinned("east.shop", OF_POSTGRES)
    assert found["transforms"] == "_whole,a,b"
    assert (found["transforms._whole.type"], found["transforms._whole.placeholder"]) == (
        "mesh.WholeRows",
        "not_there",
    )
    assert plain["transforms"].split(",")[0] == "_whole"
    assert plain["transforms._whole.placeholder"] == plain["unavailable.value.placeholder"]
    assert len(plain["unavailable.value.placeholder"]) > 32
    assert plain["skipped.operations"] == "none"
    assert plain["event.converting.failure.handling.mode"] == "fail"


@pytest.mark.parametrize("named", ["", "public.a", "public.a,sales.b"])
def test_a_source_fails_at_records_without_keys_of_tables_that_are_known_to_have_one(
    named: str,
) -> None:
    known = {**OF_POSTGRES, "table.keyless.list": named}
    assert not_allowed(known) is None
    found = pinned("east.shop", known)
    assert found["transforms._whole.keyless"] == named
    assert "table.keyless.list" not in found
    assert "transforms._whole.keyless" not in pinned("east.shop", OF_POSTGRES)
    assert not_allowed({**known, "table.keyless.list": f"{named},a.b.c"}) is not None


def test_a_value_of_an_outbox_that_cannot_be_converted_fails_its_task() -> None:
    router = "io.debezium.transforms.outbox.EventRouter"
    found = pinned("east.out", {**OF_POSTGRES, "transforms": "a", "transforms.a.type": router})
    assert found["event.converting.failure.handling.mode"] == "fail"
    assert "transforms._whole.type" not in found


@pytest.mark.parametrize(
    ("converter", "side"), [("key.converter", "Key"), ("value.converter", "Value")]
)
def test_rows_are_not_written_as_texts_of_structs(converter: str, side: str) -> None:
    own = {**OF_POSTGRES, converter: "org.apache.kafka.connect.storage.StringConverter"}
    assert f"{converter}: StringConverter writes Struct" in str(not_allowed(own))
    extracting = f"org.apache.kafka.connect.transforms.ExtractField${side}"
    one = {"transforms": "a", "transforms.a.type": extracting, "transforms.a.field": "id"}
    assert "StringConverter" not in str(not_allowed({**own, **one}))


def test_no_setting_of_a_server_changes_values_of_a_capture() -> None:
    found = pinned("east.shop", OF_POSTGRES)["driver.options"]
    warning = "client_min_messages=warning"
    for one in ("bytea_output=hex", "IntervalStyle=postgres", "row_security=off", warning):
        assert f"-c {one}" in found
    for name in ("driver.options", "database.options"):
        assert not_allowed({**OF_POSTGRES, name: "-c bytea_output=escape"}) is not None


def test_no_domain_can_take_the_place_of_the_meshs_own_transform() -> None:
    for changed in (
        {"transforms": "_whole", "transforms._whole.type": "mesh.WholeRows"},
        {"transforms": "x", "transforms.x.type": "mesh.WholeRows"},
        {"transforms._whole.placeholder": "other"},
        {"skipped.operations": "none"},
    ):
        assert not_allowed({**OF_POSTGRES, **changed}) is not None


@pytest.mark.parametrize(
    ("own", "found"),
    [(None, "_plain,_exact"), ("", "_plain,_exact"), ("a, b,", "a,b,_plain,_exact")],
)
def test_a_sink_refuses_names_that_are_not_plain_after_every_other_transform(
    own: str | None, found: str
) -> None:
    config = pinned("east.out", SINK if own is None else {**SINK, "transforms": own})
    assert config["transforms"] == f"_sound,{found}"
    assert config["transforms._sound.type"] == "mesh.SoundChanges"
    assert config["transforms._plain.type"] == "mesh.PlainNames"
    assert config["transforms._exact.type"] == "mesh.ExactValues"


@pytest.mark.parametrize("setting", ["field.include.list", "field.exclude.list"])
def test_a_sink_that_leaves_fields_out_has_any_field_otherwise_not(setting: str) -> None:
    assert "transforms._exact.cut" not in pinned("east.out", SINK)
    assert pinned("east.out", {**SINK, setting: "a"})["transforms._exact.cut"] == "true"


@pytest.mark.parametrize(
    ("order", "told"),
    [("mask", "true"), ("mask,row", "true"), ("row,mask", "false"), ("", "false")],
)
def test_a_sink_takes_no_change_where_a_transform_names_fields_of_rows(
    order: str, told: str
) -> None:
    named = {
        "transforms": order,
        "transforms.row.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.mask.type": f"{SMT}.MaskField$Value",
    }
    assert pinned("east.out", {**SINK, **named})["transforms._sound.rows"] == told


@pytest.mark.parametrize("name", ["MaskField", "ReplaceField", "Cast", "TimestampConverter"])
def test_a_capture_names_no_field_of_a_row_in_a_change(name: str) -> None:
    settings = {"ReplaceField": "exclude", "Cast": "spec", "TimestampConverter": "field"}
    named = {
        "transforms": "route,one",
        "transforms.one.type": f"{SMT}.{name}$Value",
        f"transforms.one.{settings.get(name, 'fields')}": "phone:string" * (name == "Cast") or "x",
    }
    if name == "TimestampConverter":
        named["transforms.one.target.type"] = "string"
    assert "transforms.one: it names fields of rows" in str(not_allowed({**OF_POSTGRES, **named}))


@pytest.mark.parametrize(
    ("kind", "is_fit"),
    [
        ("ValueToKey", False),
        ("ExtractField$Key", False),
        ("MaskField$Key", False),
        ("ReplaceField$Key", True),
        ("HoistField$Key", True),
        ("MaskField$Value", True),
    ],
)
def test_rows_of_a_sink_are_found_by_the_keys_that_their_records_have(
    kind: str, is_fit: bool
) -> None:
    setting = {"Hoi": "field", "Ext": "field", "Rep": "renames"}.get(kind[:3], "fields")
    named = {
        "transforms": "one",
        "transforms.one.type": f"{SMT}.{kind}",
        f"transforms.one.{setting}": "a:b" if setting == "renames" else "a",
    }
    assert (not_allowed({**SINK, **named}) is None) == is_fit
    if setting == "renames":
        left = {"transforms.one.exclude": "region"}
        assert "transforms.one.type" in str(not_allowed({**SINK, **named, **left}))


def test_rows_that_are_found_by_their_values_are_those_of_a_position() -> None:
    by_value = {**SINK, "primary.key.mode": "record_value", "primary.key.fields": "id"}
    assert "primary.key.fields" in str(unfit(by_value))
    position = {
        "primary.key.fields": "at,of",
        "transforms": "position",
        "transforms.position.type": f"{SMT}.InsertField$Value",
        "transforms.position.offset.field": "at!",
        "transforms.position.partition.field": "of!",
    }
    assert unfit({**by_value, **position}) is None
    assert unfit({**by_value, **position, "primary.key.fields": "at"}) is not None
    assert unfit({**by_value, **position, "transforms": ""}) is not None


@pytest.mark.parametrize(
    "setting", ["primary.key.fields", "field.include.list", "field.exclude.list"]
)
def test_nothing_cuts_the_key_by_which_rows_are_found(setting: str) -> None:
    assert f"{setting}: leave it out" in str(unfit({**SINK, setting: "id"}))


def test_no_sink_empties_a_table_whatever_its_config_on_the_log_says() -> None:
    assert pinned("east.out", {**SINK, "truncate.enabled": "true"})["truncate.enabled"] == "false"
    assert not_allowed({**SINK, "truncate.enabled": "true"}) is not None


@pytest.mark.parametrize("topic", ["east.My-T", "east.9T-x"])
def test_a_table_whose_name_is_quoted_all_the_same_is_named_with_quotes(topic: str) -> None:
    config = {**SINK, "topics": topic}
    config.pop("quote.identifiers", None)
    config.pop("collection.name.format", None)
    assert "quote.identifiers: write true" in str(unfit(config))
    assert unfit({**config, "quote.identifiers": "true"}) is None
    assert unfit({**config, "topics": topic.lower()}) is None


def test_heartbeats_are_kept_for_an_hour_in_a_topic_of_their_own() -> None:
    of_topics = {
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "-1",
    }
    beats = {**OF_POSTGRES, "heartbeat.interval.ms": "10000"}
    # as the log's state has it
    found = pinned("east.shop", Map({**beats, **of_topics}))
    assert found["topic.heartbeat.prefix"] == "east.__heartbeat"
    assert found["topic.creation.groups"] == "heartbeats"
    include = found["topic.creation.heartbeats.include"]
    assert re.fullmatch(include, "east.__heartbeat.east.shop")
    assert not re.fullmatch(include, "east.__heartbeat.east-shop")
    assert found["topic.creation.heartbeats.retention.ms"] == "3600000"
    for other in ({**OF_POSTGRES, **of_topics}, beats):
        assert "topic.creation.groups" not in pinned("east.shop", Map(other))


def test_a_sink_says_what_finds_its_rows() -> None:
    config = {one: value for one, value in SINK.items() if one != "primary.key.mode"}
    assert "primary.key.mode: it is missing" in str(unfit(config))
    assert unfit(SINK) is None


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"type": f"{SMT}.Cast$Value", "spec": "n:int32"}, "spec"),
        ({"type": f"{SMT}.Cast$Value", "spec": "a:string,n:int64"}, "spec"),
        ({"type": f"{SMT}.Cast$Value", "spec": "a:string,n:string"}, ""),
        ({**TO, "target.type": "Timestamp", "format": "yyyy-MM-dd HH:mm:ss.SSSSSS"}, "format"),
        ({**TO, "target.type": "Date", "format": "yyyy-MM-dd"}, "format"),
        ({**TO, "target.type": "string", "format": "yyyy-MM-dd"}, ""),
        ({**TO, "target.type": "Timestamp", "unix.precision": "microseconds"}, "unix.precision"),
        ({**TO, "target.type": "Timestamp", "unix.precision": "seconds"}, ""),
        ({**TO, "target.type": "unix", "unix.precision": "seconds"}, "unix.precision"),
        ({**TO, "target.type": "unix", "unix.precision": "milliseconds"}, ""),
        ({**TO, "target.type": "unix", "unix.precision": "microseconds"}, "unix.precision"),
    ],
)
def test_a_transform_makes_no_other_values_of_numbers_and_times(
    settings: dict[str, str], fault: str
) -> None:
    named = {f"transforms.one.{name}": value for name, value in settings.items()}
    named["transforms.row.type"] = "io.debezium.transforms.ExtractNewRecordState"
    told = not_allowed({**OF_POSTGRES, "transforms": "route,row,one", **named})
    assert f"transforms.one.{fault}" in str(told) if fault else told is None


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"table.include.list": "public.users,public.orders"}, "public.orders (or give snapshot"),
        ({"table.include.list": "public.orders"}, "public.orders (or give snapshot"),
        (
            {"table.include.list": "public.users,public.orders", "snapshot.mode": "no_data"},
            "",
        ),
        ({"topic.prefix": "east.other"}, "topic.prefix=east.other"),
        ({"database.dbname": "other"}, "database.dbname=other"),
        ({"database.hostname": "other.test", "poll.interval.ms": "77"}, ""),
    ],
)
def test_an_update_of_a_capture_reads_no_tables_anew(changed: dict[str, str], told: str) -> None:
    before = {**OF_POSTGRES, "table.include.list": "public.users"}
    found = read_anew(before, {**before, **changed})
    assert told in found if told else found == ""
    assert read_anew(SINK, {**SINK, **changed}) == ""


def test_a_sink_is_told_whether_its_keys_are_those_of_records() -> None:
    for mode, told in (("record_key", "true"), ("record_value", "false")):
        config = {**SINK, "primary.key.mode": mode}
        assert pinned("east.out", config)["transforms._exact.keys"] == told


@pytest.mark.parametrize(
    ("own", "found"),
    [
        (None, "converters.ByteArrayConverter"),
        ("storage.SimpleHeaderConverter", "converters.ByteArrayConverter"),
        ("storage.StringConverter", "storage.StringConverter"),
    ],
)
def test_no_header_stops_a_sink_whatever_its_config_on_the_log_says(
    own: str | None, found: str
) -> None:
    of = "org.apache.kafka.connect"
    config = SINK if own is None else {**SINK, "header.converter": f"{of}.{own}"}
    assert pinned("east.out", config)["header.converter"] == f"{of}.{found}"


def test_no_sink_passes_values_by_without_their_types_whatever_its_config_on_the_log_says() -> None:
    of = "dialect.postgres.unnest.insert.enabled"
    for config in (SINK, {**SINK, of: "true"}):
        assert pinned("east.out", config)[of] == "false"
    assert not_allowed({**SINK, of: "false"}) is None


def test_times_go_into_a_database_in_utc_whatever_a_config_on_the_log_says() -> None:
    berlin = {**SINK, "use.time.zone": "Europe/Berlin"}
    assert pinned("east.out", berlin)["use.time.zone"] == "UTC"
    before = {**SINK, "database.time_zone": "Europe/Berlin"}
    # as the log's state has it
    assert pinned("east.out", Map(before))["database.time_zone"] == "UTC"


@pytest.mark.parametrize("config", [OF_POSTGRES, SINK, {"connector.class": "org.example.Source"}])
def test_null_is_null_in_json_as_well(config: dict[str, str]) -> None:
    json = "org.apache.kafka.connect.json.JsonConverter"
    found = pinned("east.x", {**config, "value.converter": json})
    assert found["value.converter.replace.null.with.default"] == "false"
    assert found["value.converter.schemas.cache.size"] == "10"
    assert "key.converter.replace.null.with.default" not in found


def test_a_sink_can_neither_name_nor_settle_the_transform_of_plain_names() -> None:
    for changed in (
        {"transforms": "_plain", "transforms._plain.type": "mesh.PlainNames"},
        {"transforms": "x", "transforms.x.type": "mesh.PlainNames"},
        {"transforms._plain.predicate": "never"},
        {"transforms._exact.keys": "false"},
        {"transforms._plain.negate": "true"},
    ):
        assert not_allowed({**SINK, **changed}) is not None


def test_a_sink_may_have_the_converters_that_bring_no_names() -> None:
    of = "org.apache.kafka.connect"
    for one in ("storage.StringConverter", "converters.ByteArrayConverter"):
        converters = {"key.converter": f"{of}.{one}", "value.converter": f"{of}.{one}"}
        assert not_allowed({**SINK, **converters}) is None


def test_a_source_that_passes_over_truncate_keeps_to_that() -> None:
    assert pinned("east.shop", {**OF_POSTGRES, "skipped.operations": "t"})[
        "skipped.operations"
    ] == "t"  # fmt: skip


def test_an_outboxs_router_comes_first() -> None:
    """Behind another transform a record may be no change of a row, which it passes on as it is."""
    late = {
        "transforms": "row,outbox",
        "transforms.row.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
    }
    assert any("outbox has to be the first one" in one for one in transforms.faults(late))
    assert pinned("east.shop", {**OF_POSTGRES, **late})["transforms"] == "_whole,row,outbox"
    first = late | {"transforms": "outbox,row"}
    assert not any("the first one" in one for one in transforms.faults(first))


def test_an_outbox_is_tidied_up_as_its_service_likes() -> None:
    of = "transforms.outbox"
    routed = {
        **OF_POSTGRES,
        "transforms": "outbox",
        f"{of}.type": "io.debezium.transforms.outbox.EventRouter",
    }
    assert "skipped.operations" not in pinned("east.shop", routed)
    assert pinned("east.shop", routed)["transforms"] == "outbox"
    some = pinned("east.shop", {**routed, f"{of}.predicate": "some"})
    assert some["transforms"] == "_whole,outbox"


def test_the_slots_of_two_connectors_are_never_the_same() -> None:
    assert len({slot_of(one) for one in ("a-b.c", "a.b-c", "a.b_c", "a-b-c.d", "a.b-c-d")}) == 5


def test_names_that_kafka_takes_for_the_same_clash() -> None:
    assert clash({"east.a_b", "east.c"}, {"east.a.b"}) == {"east.a_b"}


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("16", 16), ("0", None), ("17", None), ("x", None), ("²", None)]
)
def test_a_number_of_tasks_is_small(text: str, number: int | None) -> None:
    assert tasks({"tasks.max": text}) == number


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://db.test/reports", ("postgres://db.test:5432", "reports.public.east_users")),
        ("postgresql://db.test:1/r", ("postgres://db.test:1", "r.public.east_users")),
        ("postgresql://[::1]:1/r", ("postgres://[::1]:1", "r.public.east_users")),
        ("postgresql://a:1/r?ssl=true&currentSchema=s", ("postgres://a:1", "r.s.east_users")),
    ],
)
def test_a_filled_table_is_named_as_openlineage_does(url: str, expected: tuple[str, str]) -> None:
    config = {**SINK, "topics": "east.users", "connection.url": f"jdbc:{url}"}
    (found,) = filled(config)
    assert (found.namespace, found.name) == expected


OF_ROWS = {"connector.class": JDBC_SINK, "insert.mode": "upsert"}
AT = f"{SMT}.InsertField"


@pytest.mark.parametrize(
    ("changed", "replaces"),
    [
        ({"primary.key.mode": "record_key"}, True),
        ({"primary.key.mode": "record_value", "primary.key.fields": "id"}, True),
        ({"primary.key.mode": "record_key", "insert.mode": "update"}, True),
        ({"primary.key.mode": "record_key", "insert.mode": "insert"}, False),
        (
            {
                "primary.key.mode": "record_key",
                "insert.mode": "insert",
                "delete.enabled": "true",
            },
            True,
        ),
        ({"primary.key.mode": "kafka"}, False),
        (
            {
                "primary.key.mode": "record_value",
                "insert.mode": "upsert",
                "primary.key.fields": "id,place",
                "transforms.at.type": f"{AT}$Value",
                "transforms.at.offset.field": "place!",
            },
            False,
        ),
        (
            {
                "primary.key.mode": "record_value",
                "insert.mode": "upsert",
                "primary.key.fields": "id",
                "transforms.at.type": f"{AT}$Value",
                "transforms.at.offset.field": "place!",
            },
            True,
        ),
        (
            {
                "primary.key.mode": "record_key",
                "transforms.at.type": f"{AT}$Key",
                "transforms.at.offset.field": "place",
            },
            False,
        ),
        (
            {
                "primary.key.mode": "record_key",
                "transforms.at.type": f"{AT}$Value",
                "transforms.at.offset.field": "place",
            },
            True,
        ),
    ],
)
def test_rows_are_replaced_where_the_place_of_a_record_is_no_part_of_their_key(
    changed: dict[str, str], replaces: bool
) -> None:
    assert replaces_rows({**OF_ROWS, **changed}) is replaces


def test_a_source_replaces_no_rows() -> None:
    assert not replaces_rows({**OF_ROWS, "connector.class": POSTGRES})
