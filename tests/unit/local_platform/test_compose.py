"""The composed mesh, checked without a container engine."""

import base64
import os
import re
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_platform.containers import jars as image_jars
from local_platform.containers import passwords
from local_platform.endpoints import Endpoints
from local_platform.jars.java import (
    COMPILE_LARGE_METHODS,
    EXIT_ON_OUT_OF_MEMORY,
    avro_limits,
)
from local_platform.jars.lock import JarStore, read_lock
from local_platform.jvm import AUTHORIZER, JVM_BOUNDS, POLICY
from local_platform.services.connect import IN_UTC, WORKER
from local_platform.services.kafka import MEMORY, SMALL_NODE
from local_platform.services.registry import ACCESS, BOUNDS
from local_platform.settings import PlatformSettings
from local_platform.supervision.log_files import MOST_BYTES
from mesh_events.kafka.connection import LOGIN_MODULE

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "local_platform" / "containers"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
JOBS = {"principals", "bootstrap", "sdm"}
LOCK = JarStore(Path("/nowhere"), read_lock())
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SCRIPTS = sorted(FOLDER.glob("*.sh"))


def properties(name: str) -> dict[str, str]:
    lines = (FOLDER / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_spark_and_connect_bound_what_a_record_of_avro_claims() -> None:
    for name in ("spark.sh", "connect.sh"):
        found = re.findall(r"-Dorg\.apache\.avro\.limits\S+=\d+", (FOLDER / name).read_text())
        assert found == avro_limits(), name


def test_spark_compiles_large_methods() -> None:
    assert COMPILE_LARGE_METHODS in (FOLDER / "spark.sh").read_text()


def images() -> dict[str, str]:
    """Return name -> tag of every public image in the compose file and the Dockerfile."""
    named = [one["image"] for one in SERVICES.values()]
    named += re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    return dict(name.split(":") for name in named if ":" in name)


def test_every_log_is_bounded() -> None:
    bounded = {"max-size": f"{MOST_BYTES // 2**20}m", "max-file": "2"}
    for name, one in SERVICES.items():
        assert one.get("logging", {}).get("options") == bounded, name


def test_every_server_has_a_health_check_and_every_job_is_waited_for() -> None:
    assert {name for name, one in SERVICES.items() if "healthcheck" not in one} == JOBS
    for one in SERVICES.values():
        for name, how in one.get("depends_on", {}).items():
            job = name in JOBS
            expected = "service_completed_successfully" if job else "service_healthy"
            assert how["condition"] == expected, name


def test_everything_that_a_service_waits_for_exists() -> None:
    for one in SERVICES.values():
        assert set(one.get("depends_on", {})) <= set(SERVICES)


def test_no_port_is_open_beyond_this_machine() -> None:
    published = [port for one in SERVICES.values() for port in one.get("ports", ())]
    assert published
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in published)


def test_the_images_have_the_locked_versions() -> None:
    found = images()
    assert found["apache/kafka"] == LOCK.one("connect-runtime").version
    assert found["apicurio/apicurio-registry"] == LOCK.one("apicurio-registry-app").version
    assert found["apache/spark"] == LOCK.one("spark-sql-kafka-0-10_2.13").version
    assert found["postgres"] == "18"


def test_every_secret_that_is_used_is_declared_generated_and_handed_over() -> None:
    declared = {name: one["environment"] for name, one in COMPOSE["secrets"].items()}
    assert sorted(declared.values()) == sorted(passwords.NAMES)
    assert {name.upper() for name in declared} == set(declared.values())
    for service, one in SERVICES.items():
        assert set(one.get("secrets", ())) <= set(declared), service
        for file in secret_files(one):
            assert file in one["secrets"], f"{service} reads {file}"


def secret_files(service: dict[str, Any]) -> set[str]:
    """Return the names under /run/secrets that a service's settings and scripts read."""
    texts = [str({key: value for key, value in service.items() if key != "secrets"})]
    for config in service.get("configs", ()):
        path = ROOT / COMPOSE["configs"][config["source"]]["file"]
        texts.append(path.read_text().replace("${SDM_CLUSTER}", cluster_of(service)))
    return set(re.findall(r"/run/secrets/(\w+)", " ".join(texts)))


def cluster_of(service: dict[str, Any]) -> str:
    return str(service.get("environment", {}).get("SDM_CLUSTER", ""))


def test_every_config_is_a_file_of_ours_and_used() -> None:
    used = {config["source"] for one in SERVICES.values() for config in one.get("configs", ())}
    assert used == set(COMPOSE["configs"])
    assert all((ROOT / one["file"]).is_file() for one in COMPOSE["configs"].values())


def test_every_build_target_is_in_the_dockerfile() -> None:
    stages = re.findall(r"^FROM \S+ AS (\w+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    targets = {one["build"]["target"] for one in SERVICES.values() if "build" in one}
    assert targets <= set(stages)


def test_every_volume_is_declared() -> None:
    volumes = [volume for one in SERVICES.values() for volume in one.get("volumes", ())]
    used = {one["source"] if isinstance(one, dict) else one.split(":")[0] for one in volumes}
    assert used == set(COMPOSE["volumes"])


def test_connect_reads_the_secrets_that_the_mesh_writes_and_changes_none() -> None:
    endpoints = Endpoints.model_validate_json((FOLDER / "platform.json").read_bytes())
    worker, [volume] = properties("connect.properties"), SERVICES["connect"]["volumes"]
    [account] = re.findall(r"useradd --uid (\d+)", (ROOT / "Dockerfile").read_text())

    allowed = {worker[key] for key in worker if key.endswith("allowed.paths")}
    assert allowed == {str(endpoints.connect_secrets)}
    mesh = dict(one.split(":") for one in SERVICES["principals"]["volumes"])[volume["source"]]
    assert volume["target"] == f"{mesh}/{volume['volume']['subpath']}"
    assert str(endpoints.connect_secrets).startswith(f"{volume['target']}/")
    assert volume["read_only"] is True
    assert SERVICES["connect"]["user"] == account


def test_connect_takes_the_same_login_module_everywhere() -> None:
    script = (FOLDER / "connect.sh").read_text()
    assert f"\nscram={LOGIN_MODULE}\n" in script
    assert "-Dorg.apache.kafka.allowed.login.modules=$scram" in script


def test_the_endpoints_name_services_and_secrets_of_the_compose_file() -> None:
    endpoints = Endpoints.model_validate_json((FOLDER / "platform.json").read_bytes())
    text = endpoints.model_dump_json()
    hosts = set(re.findall(r"http://([\w.-]+):", text)) | {endpoints.postgres_host}
    hosts |= {one.bootstrap_servers.split(":")[0] for one in endpoints.clusters.values()}

    assert hosts - {"127.0.0.1"} <= set(SERVICES)
    assert set(re.findall(r"file:/run/secrets/(\w+)", text)) <= set(COMPOSE["secrets"])


def test_brokers_and_connect_have_the_local_platforms_settings() -> None:
    broker, worker = properties("kafka.properties"), properties("connect.properties")

    given = SMALL_NODE | AUTHORIZER | POLICY
    assert {key: broker.get(key) for key in given} == given
    assert {key for key in broker if key.startswith("mesh.")} <= set(given)
    assert {key: worker.get(key) for key in WORKER} == WORKER
    heap = PlatformSettings.model_fields["kafka_heap_mb"].default
    bounds = [f"-D{name}={most}" for name, most in JVM_BOUNDS.items()]
    for name in ("kafka-east", "kafka-west"):
        environment = SERVICES[name]["environment"]
        assert environment["KAFKA_HEAP_OPTS"] == f"-Xmx{heap}m"
        assert environment["KAFKA_OPTS"].split() == [*MEMORY, *bounds]
    assert broker["super.users"] == "User:admin"


def test_connect_ends_when_its_heap_is_full_as_on_the_local_platform() -> None:
    script = (FOLDER / "connect.sh").read_text()
    assert f" {EXIT_ON_OUT_OF_MEMORY} " in script
    assert SERVICES["connect"]["restart"] == "unless-stopped"


def test_connect_lives_in_utc_whatever_zone_its_host_has() -> None:
    assert f" {IN_UTC} " in (FOLDER / "connect.sh").read_text()


def test_the_registry_has_the_local_platforms_rules() -> None:
    given = SERVICES["registry"]["environment"]
    assert given["JAVA_OPTS_APPEND"] == EXIT_ON_OUT_OF_MEMORY
    for key, value in (ACCESS | BOUNDS).items():
        assert given[re.sub(r"[.-]", "_", key).upper()] == value, key


def test_variables_of_our_own_are_read_by_a_script_or_by_the_settings() -> None:
    known = {f"SDM_{name.upper()}" for name in PlatformSettings.model_fields}
    scripts = " ".join(path.read_text() for path in SCRIPTS)
    for one in SERVICES.values():
        for name in one.get("environment", {}):
            if name.startswith("SDM_"):
                assert name in known or f"${{{name}}}" in scripts, name


def test_connects_health_check_asks_as_admin_and_gives_no_program_the_password(
    tmp_path: Path,
) -> None:
    kind, command = SERVICES["connect"]["healthcheck"]["test"]
    assert kind == "CMD-SHELL"
    assert "@" not in command
    (tmp_path / "connect_admin_password").write_text("p" * 60)
    asker = tmp_path / "nc"
    asker.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/to\nhead -n 2 | tee {tmp_path}/asked\n')
    asker.chmod(0o755)
    here = command.replace("$$", "$").replace("/run/secrets", str(tmp_path))
    path = f"{tmp_path}:{os.environ['PATH']}"

    done = subprocess.run(["sh", "-c", here], env={"PATH": path}, check=False)

    assert done.returncode == 1, "the answer names no plugin"
    assert (tmp_path / "to").read_text() == "127.0.0.1 8083\n"
    login = base64.b64encode(f"admin:{'p' * 60}".encode()).decode()
    assert (tmp_path / "asked").read_bytes() == (
        f"GET /connector-plugins HTTP/1.0\r\nAuthorization: Basic {login}\r\n".encode()
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_parses_and_writes_for_its_own_account_only(script: Path) -> None:
    subprocess.run(["sh", "-n", str(script)], check=True)
    assert "\nset -eu\numask 077\n" in script.read_text()


def test_passwords_are_written_once_and_for_the_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "compose.env"
    passwords.complete(path)
    first = passwords.read(path)
    passwords.complete(path)

    assert passwords.read(path) == first
    assert len(set(first.values())) == len(passwords.NAMES)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_sparks_image_has_the_locked_jars_and_the_one_of_statements_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, out = replace(LOCK, folder=tmp_path / "store"), tmp_path / "out"
    needed = [*store.of("spark"), store.one("re2j")]
    for jar in needed:
        store.path(jar).parent.mkdir(parents=True, exist_ok=True)
        store.path(jar).touch()
    for folder in (tmp_path / "plugins", out / "work"):
        folder.mkdir(parents=True)
    compiled: list[tuple[Path, str, tuple[Path, ...]]] = []
    marking: list[tuple[Path, str]] = []
    monkeypatch.setattr(image_jars, "connect_plugins", lambda *_: tmp_path / "plugins")
    monkeypatch.setattr(image_jars, "compile_once", lambda *given: compiled.append(given))

    monkeypatch.setattr(image_jars, "compile_transformations", lambda *given: marking.append(given))
    judging: list[tuple[Path, str]] = []
    monkeypatch.setattr(image_jars, "compile_for_brokers", lambda *given: judging.append(given))

    image_jars.collect(store, out)

    locked = {Path(jar.path).name for jar in needed}
    assert {path.name for path in (out / "spark").iterdir()} == locked
    [(made, class_path, _)] = compiled
    assert made == out / "spark" / "sdm-lookup.jar"
    names = {Path(one).name for one in class_path.split(":")}
    assert locked <= names
    assert any(name.startswith("scala-compiler") for name in names)
    [(made, class_path)] = marking
    assert made == out / "plugins" / "sdm-transformations" / "sdm-transformations.jar"
    assert any("/connect-api/" in name for name in class_path.split(":"))
    [(made, class_path)] = judging
    assert made == out / "kafka" / "sdm-brokers.jar"
    assert any("/kafka-clients/" in name for name in class_path.split(":"))
    assert "\nCOPY --from=jars /jars/kafka /opt/sdm\n" in DOCKERFILE
    assert "\nENV CLASSPATH=/opt/sdm/sdm-brokers.jar\n" in DOCKERFILE, "before Kafka's own classes"
    assert "\nCOPY --from=jars /jars/spark /opt/spark/jars\n" in DOCKERFILE
