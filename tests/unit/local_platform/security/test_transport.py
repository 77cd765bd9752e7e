"""The home's choice of transport, and what brokers and clients are told of it."""

from pathlib import Path

import pytest

from local_platform.errors import UnusableSettingError
from local_platform.layout import Layout
from local_platform.security import certificates
from local_platform.security.transport import Transport, record, recorded, require_same
from local_platform.services.connect import Connect
from local_platform.services.kafka import KafkaBroker
from local_platform.services.registry import Registry
from local_platform.settings import PlatformSettings
from local_platform.site import Site


def site(home: Path, asked: Transport | None = None) -> Site:
    found = Site.of(PlatformSettings(home=home, cache=home / "cache", tls=asked))
    found.make_folders()
    certificates.ensure(found.layout)
    return found


def test_a_home_is_in_the_open_until_it_is_told_otherwise_and_then_remembers(
    tmp_path: Path,
) -> None:
    layout = Layout(tmp_path)
    assert site(tmp_path).transport is Transport.OFF
    record(layout, Transport.MTLS)
    assert site(tmp_path).transport is Transport.MTLS
    assert site(tmp_path, Transport.TLS).transport is Transport.TLS


def test_a_record_that_cannot_be_understood_is_no_reason_to_open_the_brokers(
    tmp_path: Path,
) -> None:
    Layout(tmp_path).transport.write_text("mtlss\n")
    with pytest.raises(UnusableSettingError, match="write off, tls or mtls"):
        recorded(Layout(tmp_path))


def test_running_servers_keep_their_transport(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    record(layout, Transport.TLS)
    require_same(layout, None)
    require_same(layout, Transport.TLS)
    with pytest.raises(UnusableSettingError, match="runs with tls=tls, not mtls: stop it"):
        require_same(layout, Transport.MTLS)


def settings_of(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


@pytest.mark.parametrize(
    ("choice", "protocol", "demanded"),
    [
        (Transport.OFF, "SASL_PLAINTEXT", None),
        (Transport.TLS, "SASL_SSL", None),
        (Transport.MTLS, "SASL_SSL", "required"),
    ],
)
def test_both_listeners_of_a_broker_follow_the_choice(
    tmp_path: Path, choice: Transport, protocol: str, demanded: str | None
) -> None:
    found = site(tmp_path, choice)
    settings = settings_of(KafkaBroker(found, "east")._properties(tmp_path / "log"))
    map_ = settings["listener.security.protocol.map"]
    assert map_ == f"CONTROLLER:{protocol},CLIENT:{protocol}"
    for listener in ("client", "controller"):
        assert settings.get(f"listener.name.{listener}.ssl.client.auth") == demanded
    assert ("ssl.keystore.location" in settings) == (choice is not Transport.OFF)


@pytest.mark.parametrize("choice", list(Transport))
def test_every_client_of_the_platform_follows_the_choice(tmp_path: Path, choice: Transport) -> None:
    found = site(tmp_path, choice)
    protocol = "SASL_PLAINTEXT" if choice is Transport.OFF else "SASL_SSL"
    connect, registry = Connect(found, "east")._clients(), Registry(found)._settings()
    places = [
        *((connect, client) for client in ("", "producer.", "consumer.", "admin.")),
        (registry, "apicurio.kafka.common."),
    ]
    for settings, prefix in places:
        assert settings[f"{prefix}security.protocol"] == protocol
        truststore = settings.get(f"{prefix}ssl.truststore.location")
        assert (truststore is not None) == (choice is not Transport.OFF)
        shown = settings.get(f"{prefix}ssl.keystore.location")
        assert (shown is not None) == (choice is Transport.MTLS)
    assert found.endpoints().tls == found.tls
