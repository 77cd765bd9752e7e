"""Transport to Kafka: under TLS or not, and how each family of clients is told.

Which authority a client trusts, and the certificate it shows, are matters of the place where it
runs, as its password is: `SDM_TLS_CA` and `SDM_TLS_CERTIFICATE`, or else the mesh's profile.
The log says nothing of them.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic_settings import BaseSettings, SettingsConfigDict

from mesh_events.errors import ConfigurationError

PLAIN = "SASL_PLAINTEXT"
ENCRYPTED = "SASL_SSL"


@dataclass(frozen=True, slots=True)
class Tls:
    """Whom a client trusts, and what it shows of itself.

    ca: PEM file of the authorities that may vouch for a broker; there may be several
    certificate: PEM file of a client's private key and its certificate chain, where brokers
        demand one
    """

    ca: Path
    certificate: Path | None = None

    @classmethod
    def of(cls, ca: Path | None, certificate: Path | None) -> Self | None:
        """Both files, looked at; None without an authority, which means no TLS.

        Raises ConfigurationError where a file is missing, closed to this account, or of no use.
        """
        if ca is None:
            if certificate is not None:
                raise ConfigurationError(
                    f"there is a client certificate, {certificate}, but no authority: name its "
                    "PEM file in SDM_TLS_CA"
                )
            return None
        _require_pem(ca, "SDM_TLS_CA", ("CERTIFICATE",))
        if certificate is not None:
            _require_pem(certificate, "SDM_TLS_CERTIFICATE", ("CERTIFICATE", "PRIVATE KEY"))
        return cls(ca.absolute(), certificate.absolute() if certificate else None)

    def librdkafka(self) -> dict[str, str]:
        """Settings for clients on librdkafka; broker names are verified."""
        settings = {
            "ssl.ca.location": str(self.ca),
            "ssl.endpoint.identification.algorithm": "https",
        }
        if self.certificate is not None:
            # one file: each reader takes the blocks that it looks for
            settings["ssl.certificate.location"] = str(self.certificate)
            settings["ssl.key.location"] = str(self.certificate)
        return settings

    def java(self) -> dict[str, str]:
        """Settings for Java clients; broker names are verified, as they are by default."""
        settings = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.ca)}
        if self.certificate is not None:
            settings["ssl.keystore.type"] = "PEM"
            settings["ssl.keystore.location"] = str(self.certificate)
        return settings

    def context(self) -> ssl.SSLContext:
        """What Python's own TLS needs, as aiokafka does; broker names are verified."""
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=str(self.ca))
        if self.certificate is not None:
            context.load_cert_chain(self.certificate)
        return context


class TlsSettings(BaseSettings):
    """What the environment says of TLS; the profile holds where it says nothing.

    tls_ca: PEM file of the authorities that are trusted (`SDM_TLS_CA`)
    tls_certificate: PEM file of key and chain of this client (`SDM_TLS_CERTIFICATE`)
    """

    model_config = SettingsConfigDict(env_prefix="SDM_", extra="ignore", env_ignore_empty=True)

    tls_ca: Path | None = None
    tls_certificate: Path | None = None

    @classmethod
    def found(cls, ca: Path | None, certificate: Path | None) -> Tls | None:
        """The environment's files, and the given ones for what it leaves out."""
        said = cls()
        return Tls.of(said.tls_ca or ca, said.tls_certificate or certificate)


def protocol(tls: Tls | None) -> str:
    """Kafka's name of the protocol: a password over TLS or in the open."""
    return PLAIN if tls is None else ENCRYPTED


def _require_pem(path: Path, variable: str, blocks: tuple[str, ...]) -> None:
    """Look that a file can be read and has the blocks; clients say of it only that TLS failed."""
    try:
        text = path.read_text("ascii", errors="replace")
    except OSError as error:
        raise ConfigurationError(
            f"the TLS file {path} cannot be read ({error.strerror}): see {variable}, or copy the "
            "file to this place"
        ) from error
    for block in blocks:
        if f"{block}-----" not in text:
            raise ConfigurationError(
                f"the TLS file {path} has no PEM block {block}: see {variable}"
            )
