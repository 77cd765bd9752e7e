"""Where a mesh is found: its home folder and its public profile."""

import os
from pathlib import Path
from typing import Self
from urllib.parse import quote

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from mesh_events.errors import ConfigurationError
from mesh_events.files import write_atomically
from mesh_events.kafka.transport import Tls, TlsSettings
from mesh_events.meta import Frozen
from mesh_events.signing import MeshKeys, decode_public


def default_home() -> Path:
    """The folder of a mesh's data; root's is one that the account of Postgres can reach."""
    if os.geteuid() == 0:
        return Path("/var/lib/sdm")
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "sdm"


class HomeSettings(BaseSettings):
    """`SDM_HOME`: the folder with profile, keys and credentials."""

    model_config = SettingsConfigDict(env_prefix="SDM_", extra="ignore")

    home: Path = Field(default_factory=default_home)


class Profile(Frozen):
    """What every participant needs to know, none of it secret: `$SDM_HOME/mesh.json`."""

    mesh: str = Field(description="Name of the mesh")
    governance_cluster: str = Field(description="Cluster that holds mesh.governance")
    bootstrap_servers: str = Field(description="Where that cluster answers")
    registry_url: str = Field(description="Schema registry, Confluent API")
    root_key: str = Field(description="The mesh's root: it signed the log's first record")
    governor_key: str = Field(description="Decisions count under this key")
    tls_ca: str | None = Field(
        default=None,
        description="PEM file of the brokers' authority, seen from this file; none: no TLS",
    )
    tls_certificate: str | None = Field(
        default=None, description="PEM file of key and chain that clients show to brokers"
    )

    @field_validator("root_key", "governor_key")
    @classmethod
    def _key(cls, text: str) -> str:
        decode_public(text)
        return text

    @classmethod
    def load(cls, home: Path) -> Self:
        """Read the profile; raises ConfigurationError with the next step."""
        path = profile_path(home)
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise ConfigurationError(f"no mesh at {home}: run `sdm up` or set SDM_HOME") from None
        except (OSError, ValidationError) as error:
            raise ConfigurationError(f"{path} cannot be read: {error}") from error

    @property
    def keys(self) -> MeshKeys:
        """Root and governor, as an emitter needs them."""
        return MeshKeys(self.root_key, self.governor_key)

    def tls(self, home: Path) -> Tls | None:
        """How clients reach the brokers: what the environment says, else this profile at `home`.

        Raises ConfigurationError where a named file is missing or of no use.
        """
        ca, certificate = (
            home / named if named is not None else None
            for named in (self.tls_ca, self.tls_certificate)
        )
        return TlsSettings.found(ca, certificate)

    def save(self, home: Path) -> None:
        """Write the profile; whoever reads meanwhile sees the old one or the new one."""
        # for every participant, and nothing in it is secret
        text = self.model_dump_json(indent=2) + "\n"
        write_atomically(profile_path(home), text, mode=0o644)


def profile_path(home: Path) -> Path:
    """Where the profile stands."""
    return home / "mesh.json"


def key_path(home: Path, name: str) -> Path:
    """Where a key stands: `root`, `operator`, `governor`, `controller` or a domain's name."""
    return home / "keys" / f"{name}.key"


def error_path(home: Path, kind: str, thing: str, code: str) -> Path:
    """Where the worker keeps the full text of a failure, of a `link` or another kind of thing."""
    return home / "errors" / f"{kind}-{quote(thing, safe='@')}-{quote(code, safe='')}.txt"


def snapshots_path(home: Path) -> Path:
    """The folder of the log's snapshots."""
    return home / "snapshots"


def names_path(home: Path) -> Path:
    """Where the names of things stand that a shell completes."""
    return home / "names.json"


def caller_path(home: Path) -> Path:
    """Where the domain stands that `sdm switch-domain` has chosen."""
    return home / "current-domain"


def notes_path(home: Path, mesh: str) -> Path:
    """Where the checkpoints of a mesh's log stand, outside Kafka."""
    return home / "checkpoints" / f"{quote(mesh, safe='')}.notes"
