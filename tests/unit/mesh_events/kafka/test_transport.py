"""How a client of the brokers is told about TLS, and where that is read from."""

import ssl
from pathlib import Path

import pytest
from confluent_kafka import Producer

from local_platform.layout import Layout
from local_platform.security import certificates
from mesh_events.errors import ConfigurationError
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.transport import Tls
from mesh_events.settings import Profile
from tests.memory_log import key


@pytest.fixture(autouse=True)
def no_settings_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SDM_TLS_CA", "SDM_TLS_CERTIFICATE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    certificates.ensure(Layout(tmp_path))
    return tmp_path / "tls"


def profile(**tls: str) -> Profile:
    return Profile(
        mesh="m",
        governance_cluster="east",
        bootstrap_servers="127.0.0.1:9092",
        registry_url="http://127.0.0.1:8081",
        root_key=key("root").public,
        governor_key=key("governor").public,
        **tls,
    )


def test_without_an_authority_there_is_no_tls() -> None:
    assert profile().tls(Path("/nowhere")) is None
    settings = Connection("b.test:9092", "east", "secret").config()
    assert settings["security.protocol"] == "SASL_PLAINTEXT"
    assert not [name for name in settings if name.startswith("ssl.")]


def test_librdkafka_takes_the_settings_and_verifies_the_brokers_name(folder: Path) -> None:
    tls = Tls.of(folder / "ca.pem", folder / "client.pem")
    settings = Connection("b.test:9092", "east", "secret", tls).config()
    Producer(settings)
    assert settings["security.protocol"] == "SASL_SSL"
    assert settings["ssl.endpoint.identification.algorithm"] == "https"


def test_java_is_told_of_the_same_files(folder: Path) -> None:
    tls = Tls.of(folder / "ca.pem", folder / "client.pem")
    settings = Connection("b.test:9092", "east", 'se"cret', tls).java()
    assert settings["security.protocol"] == "SASL_SSL"
    assert settings["ssl.truststore.location"] == str(folder / "ca.pem")
    assert settings["ssl.keystore.location"] == str(folder / "client.pem")
    assert settings["sasl.jaas.config"].endswith('username="east" password="se\\"cret";')
    assert "ssl.keystore.location" not in Tls(folder / "ca.pem").java()


def test_pythons_own_tls_verifies_the_brokers_name_and_trusts_this_authority_only(
    folder: Path,
) -> None:
    context = Tls(folder / "ca.pem", folder / "client.pem").context()
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert [dict(pair for [pair] in one["subject"]) for one in context.get_ca_certs()] == [
        {"commonName": "sdm local authority"}
    ]


def test_the_profile_names_files_beside_itself_and_the_environment_comes_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = profile(tls_ca="tls/ca.pem", tls_certificate="tls/client.pem")
    assert found.tls(folder.parent) == Tls(folder / "ca.pem", folder / "client.pem")
    monkeypatch.setenv("SDM_TLS_CERTIFICATE", str(folder / "broker.pem"))
    assert found.tls(folder.parent) == Tls(folder / "ca.pem", folder / "broker.pem")


def test_a_file_that_is_gone_is_an_error_and_no_way_into_the_open(folder: Path) -> None:
    (folder / "ca.pem").unlink()
    with pytest.raises(ConfigurationError, match=r"ca\.pem cannot be read .*see SDM_TLS_CA"):
        profile(tls_ca="tls/ca.pem").tls(folder.parent)


def test_a_file_without_what_is_needed_is_named_with_the_missing_block(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"ca\.pem has no PEM block PRIVATE KEY"):
        Tls.of(folder / "ca.pem", folder / "ca.pem")
    with pytest.raises(ConfigurationError, match="no authority"):
        Tls.of(None, folder / "client.pem")
