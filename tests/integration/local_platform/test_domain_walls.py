"""What a domain's Spark server cannot reach, should more than its statements get to it."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from local_platform import Endpoints, LocalPlatform, PlatformSettings
from local_platform.security.accounts import runs_as_root
from mesh_events.references import resolve
from spark_streams.session import ConnectSession
from tests.integration.local_platform.clients import run_as

pytestmark = pytest.mark.platform
MINE, OTHER = "walls", "neighbour"
PUBLIC = {"platform.json", "mesh.json", "transport", "run/state.json", "run/wanted.json"}
"""Files of a home that name places and no secrets."""


@dataclass(frozen=True)
class Server:
    """A domain's server, with a session on it."""

    settings: PlatformSettings
    session: Any
    process: psutil.Process
    neighbour: psutil.Process

    @property
    def home(self) -> Path:
        return self.settings.home

    def run(self, *argv: str) -> str:
        """What a program prints that runs as the server's account, with the server's groups."""
        user, group = self.process.uids().real, self.process.gids().real
        return run_as(user, group, self.groups, *argv).stdout

    @property
    def groups(self) -> list[int]:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(one for one in status.splitlines() if one.startswith("Groups:"))
        return [int(one) for one in line.split()[1:]]


@pytest.fixture(scope="module")
def server(platform: Endpoints, settings: PlatformSettings) -> Iterator[Server]:
    del platform
    local = LocalPlatform(settings)
    remote, token = local.domain_server(MINE)
    local.domain_server(OTHER)
    pids = {one.name: one.pid for one in local.status()}
    connected = ConnectSession(remote, resolve(token), uuid.uuid4().hex)
    session = connected.call("opening a session", lambda found: found)
    yield Server(
        settings,
        session,
        psutil.Process(pids[f"spark-{MINE}"]),
        psutil.Process(pids[f"spark-{OTHER}"]),
    )
    connected.close()


@pytest.fixture
def as_root() -> None:
    if not runs_as_root():
        pytest.skip("only root can start a server as another account")


def test_each_domains_server_has_an_account_of_its_own(server: Server, as_root: None) -> None:
    accounts = {server.process.uids().real, server.neighbour.uids().real, 0}
    assert len(accounts) == 3
    assert 0 not in server.groups
    assert not server.run("cat", f"/proc/{server.neighbour.pid}/environ")


def test_its_account_reads_no_key_password_or_data_of_the_home(
    server: Server, as_root: None
) -> None:
    every = [path for path in server.home.rglob("*") if path.is_file() and not path.is_symlink()]
    secrets = [path for path in every if path.is_relative_to(server.home / "secrets")]
    assert len(secrets) > 5
    found = server.run("find", str(server.home), "-type", "f", "-readable").splitlines()
    own = (server.home / "data" / f"spark-{MINE}", server.home / "run/scratch" / f"spark-{MINE}")
    foreign = {
        str(path.relative_to(server.home))
        for path in map(Path, found)
        if not any(path.is_relative_to(folder) for folder in own)
    }
    assert foreign <= PUBLIC
    own_token = server.home / "secrets" / f"spark-{MINE}" / "token"
    assert str(own_token) not in found


def test_its_account_writes_only_its_own_folders(server: Server, as_root: None) -> None:
    found = server.run("find", str(server.home), "-writable", "-not", "-type", "l").splitlines()
    own = (server.home / "data" / f"spark-{MINE}", server.home / "run/scratch" / f"spark-{MINE}")
    assert found
    assert not [one for one in found if not any(Path(one).is_relative_to(path) for path in own)]


def test_no_file_of_the_home_opens_inside_the_server(server: Server, as_root: None) -> None:
    """A Kafka client opens files that its settings name; it says what came of it."""
    key = server.home / "secrets" / f"spark-{OTHER}" / "token"
    assert key.read_text()
    options = {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(key),
        "subscribe": "nothing",
    }
    with pytest.raises(Exception, match=r"Kafka|kafka") as caught:
        server.session.read.format("kafka").options(**options).load().collect()
    text = str(caught.value) + str(getattr(caught.value, "getStackTrace", str)())
    assert "AccessDeniedException" in text


def test_it_has_no_variable_of_whoever_started_the_mesh(server: Server) -> None:
    names = set(server.process.environ())
    assert not {name for name in names if name.startswith(("SDM_TEST", "PYTEST", "VIRTUAL"))}
    assert names <= {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LC_ALL"),
        *("SDM_SUPERVISED_HOME", "SDM_SUPERVISED_NAME", "LC_CTYPE", "SPARK_USER"),
        *("SPARK_CONNECT_AUTHENTICATE_TOKEN", "SPARK_LOCAL_HOSTNAME", "PYSPARK_PYTHON"),
    }


@pytest.mark.parametrize("name", ["reflect", "java_method", "try_reflect"])
def test_functions_that_call_java_are_not_registered(server: Server, name: str) -> None:
    from pyspark.sql.connect import functions as f

    arguments = (f.lit("java.util.UUID"), f.lit("randomUUID"))
    with pytest.raises(Exception, match="UNRESOLVED_ROUTINE"):
        server.session.range(1).select(f.call_function(name, *arguments)).collect()
    with pytest.raises(Exception, match="UNRESOLVED_ROUTINE"):
        server.session.sql(f"SELECT {name}('java.util.UUID', 'randomUUID')").collect()


@pytest.mark.parametrize(
    "call",
    ["from_xml(a, 'x STRING')", "schema_of_xml('<a/>')", "from_protobuf(a, 'M', '/etc/hostname')",
     "to_protobuf(a, 'M', '/etc/hostname')", "schema_of_avro('\"string\"')"],
)  # fmt: skip
def test_functions_whose_options_name_a_file_are_not_registered(server: Server, call: str) -> None:
    with pytest.raises(Exception, match="UNRESOLVED_ROUTINE"):
        server.session.sql(f"SELECT {call} FROM VALUES (X'00') AS t(a)").collect()


def test_a_schema_of_avro_comes_from_no_file(server: Server, tmp_path: Path) -> None:
    """An account that may read a file could have its fields as the type of a result."""
    tmp_path.chmod(0o755)
    schema = tmp_path / "schema.avsc"
    schema.write_text('{"type":"record","name":"a","fields":[{"name":"canary","type":"int"}]}')
    url = f"file://{schema}"
    given = "SELECT from_avro(X'02', '\"int\"', {}) AS found"
    for options in (
        f"map('avroSchemaUrl', '{url}')",
        f"map('mode', 'FAILFAST', 'AVROSCHEMAURL', '{url}')",
        f"map(concat('avroSchema', 'Url'), '{url}')",
        f"map_concat(map('avroSchemaUrl', '{url}'), map('mode', 'FAILFAST'))",
    ):
        with pytest.raises(Exception, match="reads Kafka alone") as refused:
            server.session.sql(given.format(options)).collect()
        assert "canary" not in str(refused.value)
    found = server.session.sql(given.format("map('mode', 'FAILFAST')")).collect()
    assert found[0]["found"] == 1


FILE = "file:///etc/hostname"
READERS: dict[str, Callable[[Any], Any]] = {
    **{
        kind: lambda session, kind=kind: session.read.format(kind).load(FILE).collect()
        for kind in ("text", "csv", "json", "parquet", "orc", "binaryFile", "avro", "xml")
    },
    "class": lambda session: (
        session.read.format("org.apache.spark.sql.execution.datasources.text.TextFileFormat")
        .load(FILE)
        .collect()
    ),
    "jdbc": lambda session: session.read.jdbc(
        "jdbc:postgresql://127.0.0.1:1/east", "users"
    ).collect(),
    "stream": lambda session: session.readStream.format("text").load(FILE).schema,
    "sql": lambda session: session.sql("SELECT * FROM text.`/etc/hostname`").collect(),
    "subquery": lambda session: session.sql(
        "SELECT (SELECT max(value) FROM text.`/etc/hostname`)"
    ).collect(),
    "cte": lambda session: session.sql(
        "WITH a AS (SELECT * FROM csv.`/etc/hostname`) SELECT * FROM a"
    ).collect(),
    "table": lambda session: session.sql(
        "CREATE TEMPORARY VIEW a USING text OPTIONS (path '/etc/hostname')"
    ).collect(),
    "jar": lambda session: session.sql("ADD JAR '/etc/hostname'").collect(),
    "write": lambda session: (
        session.range(1).selectExpr("string(id)").write.text(f"file:///tmp/{uuid.uuid4().hex}")
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_nothing_but_kafka_is_read_and_nothing_written(server: Server, reader: str) -> None:
    with pytest.raises(Exception, match="reads Kafka alone"):
        READERS[reader](server.session)


def test_what_statements_are_made_of_still_runs(server: Server) -> None:
    frame = server.session.createDataFrame([(1, "a"), (2, "b")], "id int, name string")
    frame.createOrReplaceTempView("pairs")
    rows = server.session.sql("SELECT upper(name) AS name FROM pairs ORDER BY id").collect()
    assert [row["name"] for row in rows] == ["A", "B"]
