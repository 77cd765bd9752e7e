"""Where the local platform lives and which ports it takes, from `SDM_*` variables."""

import os
from pathlib import Path

import psutil
from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from local_platform.errors import UnusableSettingError
from local_platform.security.transport import Transport
from mesh_events.settings import default_home

# Linux hands out ports from 32768 up to any program; a server's port there may be gone.
_FIRST_EPHEMERAL_PORT = 32768
_PORT_SPAN = 200
MAY_BE = {
    "home": "a folder",
    "cache": "a folder",
    "port_base": f"a whole number from 1024 to {_FIRST_EPHEMERAL_PORT - _PORT_SPAN - 1}",
    "maven_url": "the address of a Maven repository",
    "lifetime_s": "a number of seconds above 0",
    "tls": "off, tls or mtls",
    "reauth_s": "a whole number of seconds from 1 to 86400",
    "west_registry": "true or false",
    "kafka_heap_mb": "a whole number of MiB from 256 to 65536",
    "quick_java": "true or false",
    "connect_idle_s": "a number of seconds from 1 to 86400",
    "connect_workers": "a whole number from 1 to 60",
    "quota_mib_s": "a whole number of MiB per second, or 0 for no quota",
    "quota_requests": "a whole number of percent, or 0 for no quota",
}
"""Setting -> what it may be, in words."""


def _default_cache() -> Path:
    """Return the folder of fetched jars, shared by all meshes of this account."""
    if os.geteuid() == 0:
        return Path("/var/cache/sdm")
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sdm"


MOST_CONNECT_WORKERS = 60
_CONNECT_WORKER_MIB = 350


def _connect_workers() -> int:
    """Return how many Connect workers a third of the memory has room for."""
    mib = psutil.virtual_memory().total // 2**20
    return max(1, min(MOST_CONNECT_WORKERS, mib // 3 // _CONNECT_WORKER_MIB))


class PlatformSettings(BaseSettings):
    """Settings of one local platform.

    home: folder of data, logs, secrets and state (`SDM_HOME`)
    cache: folder of the fetched jars (`SDM_CACHE`)
    port_base: every port is this plus a fixed number (`SDM_PORT_BASE`)
    maven_url: base address of a mirror; None means Maven Central (`SDM_MAVEN_URL`)
    lifetime_s: seconds after which the mesh stops by itself; None means never, as a test
        that was killed could not stop it (`SDM_LIFETIME_S`)
    tls: how brokers are reached; None means as the home did before, or off (`SDM_TLS`)
    west_registry: the cluster west has a schema registry of its own; it keeps one that it had
        (`SDM_WEST_REGISTRY`)
    reauth_s: seconds after which a session with a broker must prove its login anew, or ends
        (`SDM_REAUTH_S`)
    kafka_heap_mb: largest heap of each broker, MiB (`SDM_KAFKA_HEAP_MB`)
    quick_java: brokers and Spark compile their code once and simply: half the CPU time of a start,
        less throughput, for a mesh that lives for minutes (`SDM_QUICK_JAVA`)
    connect_idle_s: seconds that a domain's Connect worker has had no connector to run for when it
        is stopped (`SDM_CONNECT_IDLE_S`)
    connect_workers: so many domains may have a Connect worker at the same time; by default as many
        as a third of the memory has room for (`SDM_CONNECT_WORKERS`)
    quota_mib_s: what each login may write to a cluster, and as much read from it, MiB per second
        (`SDM_QUOTA_MIB_S`)
    quota_requests: what each login may take of a broker's threads, percent of one
        (`SDM_QUOTA_REQUESTS`)
    """

    model_config = SettingsConfigDict(env_prefix="SDM_", extra="ignore")

    home: Path = Field(default_factory=default_home)
    cache: Path = Field(default_factory=_default_cache)
    port_base: int = Field(default=19000, ge=1024, lt=_FIRST_EPHEMERAL_PORT - _PORT_SPAN)
    maven_url: str | None = None
    lifetime_s: float | None = Field(default=None, gt=0)
    tls: Transport | None = None
    west_registry: bool = False
    reauth_s: int = Field(default=3600, ge=1, le=86_400)
    kafka_heap_mb: int = Field(default=768, ge=256, le=65_536)
    quick_java: bool = False
    connect_idle_s: float = Field(default=300, ge=1, le=86_400)
    connect_workers: int = Field(default_factory=_connect_workers, ge=1, le=MOST_CONNECT_WORKERS)
    quota_mib_s: int = Field(default=64, ge=0, le=1_000_000)
    quota_requests: int = Field(default=200, ge=0, le=1_000_000)

    def environment(self) -> dict[str, str]:
        """Return the variables that make a child process see these same settings."""
        values = self.model_dump(mode="json", exclude_none=True)
        return {f"SDM_{name.upper()}": str(value) for name, value in values.items()}


def read_settings() -> PlatformSettings:
    """The settings that the environment gives.

    Raises UnusableSettingError, which names the variable and what it may be.
    """
    for name in ("home", "cache"):
        if _variable(name) in os.environ:
            require_folder(_variable(name), os.environ[_variable(name)])
    try:
        return PlatformSettings()
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise _unusable(_variable(name), str(first["input"]), name) from error


def require_folder(variable: str, text: str) -> None:
    """Raise UnusableSettingError where `text` is neither a folder nor where one can be made."""
    path = Path(text).absolute()
    try:
        nearest = next(one for one in (path, *path.parents) if one.exists())
        usable = text.strip() != "" and nearest.is_dir()
    except (OSError, ValueError):
        usable = False
    if not usable:
        raise _unusable(variable, text, "home")


def _variable(name: str) -> str:
    return f"SDM_{name.upper()}"


def _unusable(variable: str, text: str, name: str) -> UnusableSettingError:
    given = repr(text) if text else "empty"
    return UnusableSettingError(
        f"{variable} is {given}: set it to {MAY_BE[name]}, or unset it for the default"
    )
