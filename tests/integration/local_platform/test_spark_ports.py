"""The ports of Spark's servers: a driver in local mode needs none but that of Spark Connect."""

import uuid

import psutil
import pytest
from pyspark.sql.connect.functions import lit, repeat

from local_platform import Endpoints, LocalPlatform, PlatformSettings
from spark_streams.session import ConnectSession
from tests.mesh_fixtures import domain_server, spark_service

pytestmark = pytest.mark.platform
DOMAIN = "ports"


def test_a_server_listens_at_no_port_but_its_own(
    platform: Endpoints, settings: PlatformSettings
) -> None:
    remote, _ = domain_server(platform, DOMAIN)
    every = LocalPlatform(settings).status()
    [server] = [one for one in every if one.name == spark_service(DOMAIN)]
    found = psutil.Process(server.pid).net_connections("inet")
    ports = {one.laddr.port for one in found if one.status == psutil.CONN_LISTEN}
    assert [port for port in ports if f":{port}" not in remote] == []
    assert len(ports) == 1


def test_a_result_of_many_megabytes_comes_without_the_port_for_blocks(platform: Endpoints) -> None:
    connected = ConnectSession(*domain_server(platform, DOMAIN), uuid.uuid4().hex)
    spark = connected.call("opening a session", lambda found: found)
    try:
        lengths = spark.range(8, numPartitions=1).select("id", repeat(lit("x"), 4_000_000))
        rows = [(row[0], len(row[1])) for row in lengths.collect()]
    finally:
        connected.close()
    assert rows == [(at, 4_000_000) for at in range(8)]
