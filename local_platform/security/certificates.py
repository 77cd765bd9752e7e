"""The certificates of one home: its own authority, one certificate for brokers, one for clients.

Where `ca.pem` lies in the folder without `ca.key`, the files are somebody else's: they are looked
at and never replaced. All keys are EC P-256, unencrypted PKCS 8 in 0600 files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from local_platform.errors import BadCertificateError
from local_platform.files import private_folder
from local_platform.layout import Layout
from local_platform.ports import HOST
from local_platform.security.transport import broker_path, ca_path, client_path
from mesh_events.files import write_atomically

CA_LIFE = timedelta(days=5 * 365)
LEAF_LIFE = timedelta(days=397)
RENEW_BEFORE = timedelta(days=30)
"""A certificate of brokers or clients with less than this left is made anew at the next start."""
_SKEW = timedelta(minutes=5)
"""Clocks that are a little behind take a fresh certificate, too."""
_SERVER, _CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH


@dataclass(frozen=True)
class Issuer:
    """An authority that can sign."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def ensure(layout: Layout, now: datetime | None = None) -> None:
    """Make what is missing or ends soon, and leave the rest; repeatable.

    Raises BadCertificateError where a foreign file is missing, cannot be read or has ended.
    """
    now = now or datetime.now(UTC)
    private_folder(layout.tls).chmod(0o755)
    ca, key = ca_path(layout), layout.tls / "ca.key"
    if ca.exists() and not key.exists():
        _look_at_foreign(layout, now)
        return
    _require_pair(ca, key)
    issuer = _issuer(ca, key, now)
    # brokers are clients of each other
    _leaf(issuer, broker_path(layout), "sdm broker", (_SERVER, _CLIENT), now)
    _leaf(issuer, client_path(layout), "sdm client", (_CLIENT,), now)


def certificates(path: Path) -> list[x509.Certificate]:
    """The certificates in a PEM file, in their order; raises BadCertificateError."""
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadCertificateError(f"{path} holds no certificate: {error}") from error


def first_end(layout: Layout) -> datetime:
    """When the first of the home's certificates ends; raises BadCertificateError."""
    paths = ca_path(layout), broker_path(layout), client_path(layout)
    return min(one.not_valid_after_utc for path in paths for one in certificates(path))


def _look_at_foreign(layout: Layout, now: datetime) -> None:
    for path in (ca_path(layout), broker_path(layout), client_path(layout)):
        if not path.exists():
            raise BadCertificateError(
                f"{path} is missing: with an authority of your own (no ca.key there), put your "
                "key and chain into it, or remove ca.pem to have all of them made"
            )
        end = min(one.not_valid_after_utc for one in certificates(path))
        if end <= now:
            raise BadCertificateError(f"{path} ended on {end:%Y-%m-%d}: replace it")


def _require_pair(ca: Path, key: Path) -> None:
    """Somebody else's authority beside a key of ours: nothing is made that would replace theirs."""
    private = _stored_key(key)
    if private is None or not ca.exists():
        return
    if certificates(ca)[0].public_key() != private.public_key():
        raise BadCertificateError(
            f"{key} is not the key of {ca}: remove ca.key to use an authority of your own, or "
            "ca.pem to have all of them made"
        )


def _issuer(ca: Path, key: Path, now: datetime) -> Issuer:
    """The home's authority; its key lives on where its certificate is renewed."""
    private = _stored_key(key) or _new_key()
    # so no certificate lasts longer than the authority's that vouches for it
    if key.exists() and _is_fresh(ca, now, LEAF_LIFE + RENEW_BEFORE):
        return Issuer(private, certificates(ca)[0])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sdm local authority")])
    usage = _usage(key_cert_sign=True, crl_sign=True)
    certificate = (
        _begun(name, private.public_key(), now, CA_LIFE)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(private, hashes.SHA256())
    )
    write_atomically(key, _pem_of_key(private), mode=0o600)
    write_atomically(ca, _pem(certificate))
    return Issuer(private, certificate)


def _leaf(
    issuer: Issuer, path: Path, name: str, purposes: Sequence[x509.ObjectIdentifier], now: datetime
) -> None:
    """Make a certificate of the authority unless a good one is there."""
    if _is_fresh(path, now, RENEW_BEFORE) and _is_from(issuer, path):
        return
    private = _new_key()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key())
    builder = (
        _begun(subject, private.public_key(), now, LEAF_LIFE)
        .issuer_name(issuer.certificate.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(authority, critical=False)
    )
    if _SERVER in purposes:
        names = [x509.DNSName("localhost"), x509.IPAddress(ip_address(HOST))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signed = builder.sign(issuer.key, hashes.SHA256())
    write_atomically(path, _pem_of_key(private) + _pem(signed), mode=0o600)


def _begun(
    subject: x509.Name, public: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _is_fresh(path: Path, now: datetime, left: timedelta) -> bool:
    """Whether a certificate is there and lasts longer than `left`."""
    if not path.exists():
        return False
    return certificates(path)[0].not_valid_after_utc - now > left


def _is_from(issuer: Issuer, path: Path) -> bool:
    """Whether the authority's key made it: it may have been replaced."""
    try:
        certificates(path)[0].verify_directly_issued_by(issuer.certificate)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _stored_key(path: Path) -> ec.EllipticCurvePrivateKey | None:
    if not path.exists():
        return None
    try:
        found = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise BadCertificateError(f"{path} is no private key that can be read: {error}") from error
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise BadCertificateError(
            f"{path} is no EC key: remove {path.parent} to have all made anew"
        )
    return found


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")


def _pem_of_key(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode("ascii")
