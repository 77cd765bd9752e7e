"""What the classes of our own in a sink's plugins do, asked without a connector."""

import subprocess
from base64 import b64encode
from pathlib import Path

import pytest

from local_platform import Endpoints, PlatformSettings
from local_platform.jars.java import java
from local_platform.jars.plugins import connect_plugins
from local_platform.jars.scala_jars import (
    compile_once,
    compile_transformations,
    pyspark_jars,
    transformations_jar,
)
from local_platform.site import Site

pytestmark = pytest.mark.slow


def said_by(
    main: str, plugin: str, words: list[str], settings: PlatformSettings, folder: Path
) -> list[str]:
    """What a program of this folder says with the classes of one of Connect's plugins and ours."""
    site = Site.of(settings)
    jars = sorted((connect_plugins(site.jars, site.cache) / plugin).glob("*.jar"))
    # a plugin's jars in the order of their names, as Connect reads them
    path = ":".join(map(str, [*jars, *pyspark_jars("scala-*")]))
    kafka = site.jars.class_path("kafka")
    compile_transformations(own := transformations_jar(site.cache, kafka), kafka)
    path = f"{path}:{own}:{kafka}"
    made = folder / "program.jar"
    compile_once(made, path, (Path(__file__).with_name(f"{main}.scala"),))
    argv = [*java(f"mesh.{main}", 256, f"{made}:{path}"), *words]
    said = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120)
    return said.stdout.splitlines()


KEPT = {
    **{f"io.debezium.time.{one}": "INT32" for one in ("Date", "Time")},
    **{f"io.debezium.time.{one}Time": "INT64" for one in ("Micro", "Nano")},
    **{f"io.debezium.time.{one}Timestamp": "INT64" for one in ("", "Micro", "Nano")},
    **{f"io.debezium.time.Zoned{one}": "STRING" for one in ("Time", "Timestamp")},
    "io.debezium.time.MicroDuration": "INT64",
    **{f"io.debezium.data.{one}": "STRING" for one in ("Enum", "Json", "Uuid")},
    "io.debezium.data.Bits": "BYTES",
    **{f"org.apache.kafka.connect.data.{one}": "INT32" for one in ("Date", "Time")},
    "org.apache.kafka.connect.data.Timestamp": "INT64",
    "org.apache.kafka.connect.data.Decimal": "BYTES",
}
"""The name of a type -> what it is made of."""


@pytest.mark.usefixtures("mesh")
def test_a_sink_goes_by_no_name_of_a_type_that_is_made_of_another(
    settings: PlatformSettings, tmp_path: Path
) -> None:
    """Debezium takes a number of any type for a time, and cuts what it has behind the point."""
    said = said_by("AskNames", "debezium-connector-jdbc", [], settings, tmp_path)
    found = {(name, kind): what for name, kind, what in (line.split(" ", 2) for line in said)}
    assert {one for one, what in found.items() if what == "kept" and one[1] != "STRUCT"} == set(
        KEPT.items()
    )
    assert {
        what for (name, kind), what in found.items() if kind != KEPT.get(name) and kind != "STRUCT"
    } == {"left out"}
    records = {name: what for (name, kind), what in found.items() if kind == "STRUCT"}
    assert records.pop("io.debezium.data.geometry.Point") == "kept"
    assert {what for name, what in records.items() if "." in name} == {"refused value_not_exact"}


@pytest.mark.usefixtures("mesh")
def test_times_finer_than_milliseconds_are_never_taken_for_milliseconds(
    settings: PlatformSettings, tmp_path: Path
) -> None:
    """Microseconds of 2023 came as a day of the year 55840."""
    said = said_by("AskTimes", "debezium-connector-postgres", [], settings, tmp_path)
    found = dict(line.split(" ", 1) for line in said)
    assert {name: found.pop(name) for name in ("bigint", "connect", "Timestamp", "Timestamp?")} == {
        **dict.fromkeys(("bigint", "connect", "Timestamp"), "2023-11-14"),
        "Timestamp?": "null",
    }
    assert len(found) == 8
    assert set(found.values()) == {"refused time_not_milliseconds"}


LED = {
    "east.order": "east.order",
    "east.ord er/é": "east.ord_er__",
    "east.a\nb\x00c": "east.a_b_c",
    "east.\U0001f600": "east._",
    "east.": "east._",
    "east..": "east..",
    f"east.{'é' * 300}": f"east.{'_' * 244}",
}
"""A topic that the row of an outbox names -> the one that its record goes to."""


@pytest.mark.usefixtures("mesh")
def test_a_record_for_a_topic_that_kafka_does_not_allow_goes_to_one_that_it_does(
    settings: PlatformSettings, tmp_path: Path
) -> None:
    """It ended its connector, and the row was in the database's log to stay."""
    words = [b64encode(one.encode()).decode() for one in (*LED, "west.ord er", "east", "")]
    said = said_by("AskTopics", "debezium-connector-postgres", words, settings, tmp_path)
    assert said[: len(LED)] == [f"{one} paid 7" for one in LED.values()]
    refused = ["refused topic_not_own: east: a record leads to another's topic"]
    assert said[len(LED) :] == refused * 3


@pytest.mark.usefixtures("mesh")
def test_a_table_lacks_a_column_of_a_field_that_has_to_be_there_as_of_any_other(
    settings: PlatformSettings, tmp_path: Path
) -> None:
    """Debezium refuses to add one; a column of the key would be in no index."""
    said = said_by("AskColumns", "debezium-connector-jdbc", [], settings, tmp_path)
    disabled = "Cannot alter table public.users because schema evolution is disabled"
    assert said == [
        "key table_not_fit: public.users: a record's key is of a column that the table lacks",
        f"order {disabled}",
        f"note {disabled}",
    ]


@pytest.mark.usefixtures("mesh")
def test_a_partition_is_written_by_one_task_at_a_time(
    settings: PlatformSettings, tmp_path: Path
) -> None:
    assert said_by("TwoTasks", "debezium-connector-jdbc", [], settings, tmp_path) == [
        "another connector writes",
        "the first ends",
        "the second writes",
        "the first is refused: another task has got the partition east.out east.users-0",
    ]


def test_a_registry_that_is_away_is_no_fault_of_a_record(
    mesh: Endpoints, settings: PlatformSettings, tmp_path: Path
) -> None:
    """Connect makes a dead letter of any exception of a converter, and passes the record by."""
    there = mesh.registry_url.partition("/apis")[0]
    addresses = [f"{one}/apis/registry/v2" for one in ("http://127.0.0.1:1", there)]
    said = said_by("AskRegistry", "apicurio-converter", addresses, settings, tmp_path)
    away, unknown = (one for one in said if one.startswith(("Error", "Exception", "read")))
    assert away.startswith("Error registry_unavailable: ")
    assert unknown.startswith("Exception "), unknown
