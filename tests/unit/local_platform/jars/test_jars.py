"""The committed lock file, and reading one."""

import re
import tomllib
from pathlib import Path

import pytest

from local_platform.errors import BadLockFileError
from local_platform.jars.lock import Jar, JarStore, read_lock

LOCK = read_lock()
STORE = JarStore(Path("/nowhere"), LOCK)


def pinned_in_pyproject(package: str) -> str:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in project["dependencies"]:
        if match := re.match(rf"{package}(\[\w+\])?==([\d.]+)$", requirement):
            return match[2]
    pytest.fail(f"{package} is not pinned in pyproject.toml")


def test_every_entry_is_pinned_by_a_sha256_and_a_size() -> None:
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) and jar.size > 0 for jar in LOCK)


def test_no_file_is_named_twice_in_one_group() -> None:
    named = [(jar.group, Path(jar.path).name) for jar in LOCK]
    assert len(named) == len(set(named))


def test_one_kafka_version_runs_brokers_connect_and_mirrors() -> None:
    versions = {
        jar.version
        for jar in STORE.of("kafka")
        if ":" in jar.coordinate and jar.coordinate.startswith("org.apache.kafka:")
    }
    assert versions == {STORE.one("connect-runtime").version}


def test_the_spark_connector_is_the_installed_sparks_own() -> None:
    assert STORE.one("spark-sql-kafka-0-10_2.13").version == pinned_in_pyproject("pyspark")


def test_topics_of_connectors_can_be_routed() -> None:
    assert STORE.one("connect-transforms").group == "kafka"


def test_a_path_follows_the_repository_layout() -> None:
    plain = Jar("org.apache.kafka:connect-api:4.3.1:jar:", "kafka", "", 0)
    special = Jar("io.debezium:debezium-x:3.6.3.Final:tar.gz:plugin", "plugins", "", 0)

    assert plain.path == "org/apache/kafka/connect-api/4.3.1/connect-api-4.3.1.jar"
    assert special.path == "io/debezium/debezium-x/3.6.3.Final/debezium-x-3.6.3.Final-plugin.tar.gz"


def test_a_class_path_is_sorted() -> None:
    parts = STORE.class_path("kafka").split(":")
    assert parts == sorted(parts)
    assert len(parts) == len(STORE.of("kafka"))


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", '[{"c": "a:b"}]', '[{"c":"a:b:1:jar:","to":"k","sha256":"x","size":1}]'],
)
def test_a_damaged_lock_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "jars.lock.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(BadLockFileError, match=r"jars\.lock\.json cannot be read.*reinstall"):
        read_lock(path)


def test_a_missing_lock_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadLockFileError, match="cannot be read"):
        read_lock(tmp_path / "none.json")
