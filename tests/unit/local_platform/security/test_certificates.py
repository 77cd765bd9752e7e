"""The certificates that a home makes for itself, and those that are brought to it."""

import stat
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import ClientVerifier, PolicyBuilder, ServerVerifier, Store

from local_platform.errors import BadCertificateError
from local_platform.layout import Layout
from local_platform.security import certificates
from local_platform.security.transport import broker_path, ca_path, client_path

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    found = Layout(tmp_path / "home")
    certificates.ensure(found, NOW)
    return found


def leaf(path: Path) -> x509.Certificate:
    [found] = certificates.certificates(path)
    return found


def server_verifier(layout: Layout, name: x509.DNSName | x509.IPAddress) -> ServerVerifier:
    store = Store(certificates.certificates(ca_path(layout)))
    return PolicyBuilder().store(store).time(NOW).build_server_verifier(name)


def client_verifier(layout: Layout) -> ClientVerifier:
    store = Store(certificates.certificates(ca_path(layout)))
    return PolicyBuilder().store(store).time(NOW).build_client_verifier()


@pytest.mark.parametrize(
    "name", [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
)
def test_a_brokers_certificate_is_good_for_this_machines_names(
    layout: Layout, name: x509.DNSName | x509.IPAddress
) -> None:
    chain = server_verifier(layout, name).verify(leaf(broker_path(layout)), [])
    assert len(chain) == 2


def test_a_brokers_certificate_is_good_for_no_other_name(layout: Layout) -> None:
    with pytest.raises(x509.verification.VerificationError):
        server_verifier(layout, x509.DNSName("elsewhere.test")).verify(
            leaf(broker_path(layout)), []
        )


def test_a_clients_certificate_cannot_serve(layout: Layout) -> None:
    uses = leaf(client_path(layout)).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(uses) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    with pytest.raises(x509.verification.VerificationError):
        server_verifier(layout, x509.DNSName("localhost")).verify(leaf(client_path(layout)), [])


def test_another_homes_certificate_is_not_taken(layout: Layout, tmp_path: Path) -> None:
    other = Layout(tmp_path / "other")
    certificates.ensure(other, NOW)
    store = Store(certificates.certificates(ca_path(layout)))
    server = PolicyBuilder().store(store).build_server_verifier(x509.DNSName("localhost"))
    with pytest.raises(x509.verification.VerificationError):
        server.verify(leaf(broker_path(other)), [])


def test_only_the_owner_reads_a_key_and_everybody_the_authority(layout: Layout) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in layout.tls.iterdir()}
    assert modes == {"ca.key": 0o600, "broker.pem": 0o600, "client.pem": 0o600, "ca.pem": 0o644}


def test_every_certificate_ends_and_none_lasts_longer_than_it_should(layout: Layout) -> None:
    life = {
        path: leaf(path).not_valid_after_utc - NOW
        for path in (ca_path(layout), broker_path(layout), client_path(layout))
    }
    assert life[ca_path(layout)] <= certificates.CA_LIFE
    assert life[broker_path(layout)] <= certificates.LEAF_LIFE
    assert life[client_path(layout)] <= certificates.LEAF_LIFE


def test_what_lasts_a_while_yet_is_left_as_it_is(layout: Layout) -> None:
    before = {path: path.read_bytes() for path in layout.tls.iterdir()}
    certificates.ensure(layout, NOW + DAY)
    assert {path: path.read_bytes() for path in layout.tls.iterdir()} == before


def test_what_ends_soon_is_made_anew_by_the_same_authority(layout: Layout) -> None:
    authority, old = ca_path(layout).read_bytes(), leaf(broker_path(layout))
    later = NOW + certificates.LEAF_LIFE - certificates.RENEW_BEFORE + DAY
    certificates.ensure(layout, later)
    new = leaf(broker_path(layout))
    assert new.not_valid_after_utc > old.not_valid_after_utc
    assert new.public_key() != old.public_key()
    assert ca_path(layout).read_bytes() == authority


def test_an_authority_that_ends_soon_is_renewed_and_old_copies_of_it_still_vouch(
    layout: Layout,
) -> None:
    old = certificates.certificates(ca_path(layout))
    later = NOW + certificates.CA_LIFE - certificates.LEAF_LIFE
    certificates.ensure(layout, later)
    [new] = certificates.certificates(ca_path(layout))
    assert new.not_valid_after_utc > old[0].not_valid_after_utc
    assert new.public_key() == old[0].public_key()
    leaf(broker_path(layout)).verify_directly_issued_by(old[0])
    assert certificates.first_end(layout) == leaf(client_path(layout)).not_valid_after_utc
    assert new.not_valid_after_utc > leaf(broker_path(layout)).not_valid_after_utc


def test_a_lost_certificate_is_made_again_and_a_lost_authority_replaces_all(layout: Layout) -> None:
    client_path(layout).unlink()
    certificates.ensure(layout, NOW)
    client_verifier(layout)
    (layout.tls / "ca.key").unlink()
    ca_path(layout).unlink()
    certificates.ensure(layout, NOW)
    server_verifier(layout, x509.DNSName("localhost")).verify(leaf(broker_path(layout)), [])


def test_files_of_an_authority_of_ones_own_are_left_and_looked_at(layout: Layout) -> None:
    (layout.tls / "ca.key").unlink()
    before = {path: path.read_bytes() for path in layout.tls.iterdir()}
    certificates.ensure(layout, NOW + certificates.LEAF_LIFE - DAY)
    assert {path: path.read_bytes() for path in layout.tls.iterdir()} == before

    with pytest.raises(BadCertificateError, match=r"broker\.pem ended on .*: replace it"):
        certificates.ensure(layout, NOW + certificates.LEAF_LIFE + DAY)
    client_path(layout).unlink()
    with pytest.raises(BadCertificateError, match=r"client\.pem is missing"):
        certificates.ensure(layout, NOW)


def test_an_authority_of_ones_own_beside_a_forgotten_key_replaces_nothing(
    layout: Layout, tmp_path: Path
) -> None:
    other = Layout(tmp_path / "other")
    certificates.ensure(other, NOW)
    brokers = broker_path(layout).read_bytes()
    ca_path(layout).write_bytes(ca_path(other).read_bytes())
    with pytest.raises(BadCertificateError, match=r"remove ca\.key"):
        certificates.ensure(layout, NOW)
    assert broker_path(layout).read_bytes() == brokers


def test_a_file_that_is_no_certificate_is_named(layout: Layout) -> None:
    broker_path(layout).write_text("nothing")
    with pytest.raises(BadCertificateError, match=r"broker\.pem holds no certificate"):
        certificates.ensure(layout, NOW)
