"""The folders of one local mesh: `$SDM_HOME` (its life) and `$SDM_CACHE` (fetched bytes)."""

from dataclasses import dataclass
from pathlib import Path

from mesh_events.schema import known_ids
from mesh_events.settings import (
    caller_path,
    error_path,
    key_path,
    names_path,
    notes_path,
    profile_path,
    snapshots_path,
)


@dataclass(frozen=True)
class Layout:
    """Names every path below a home; makes none of them.

    What belongs to the life of one log is emptied by a fresh start; `logs` stay.
    """

    home: Path

    @property
    def data(self) -> Path:
        """Data folders, one per service."""
        return self.home / "data"

    @property
    def conf(self) -> Path:
        """Generated settings files; 0700, since some hold a password."""
        return self.home / "conf"

    @property
    def logs(self) -> Path:
        """Log files, `<service>.log`; 0700, since servers quote what they were given."""
        return self.home / "logs"

    @property
    def run(self) -> Path:
        """The supervisor's lock and state, and the servers' scratch folders."""
        return self.home / "run"

    @property
    def secrets(self) -> Path:
        """Generated credentials, `<place>/<principal>`; 0700 folders, 0600 files."""
        return self.home / "secrets"

    @property
    def tls(self) -> Path:
        """Certificates and their keys, every key in a 0600 file; a fresh start leaves them."""
        return self.home / "tls"

    @property
    def transport(self) -> Path:
        """The home's choice of transport; a fresh start must not open what was shut."""
        return self.home / "transport"

    @property
    def endpoints(self) -> Path:
        """Where the running mesh answers (`Endpoints` as JSON)."""
        return self.home / "platform.json"

    @property
    def state(self) -> Path:
        """The supervisor's last written state (`PlatformState` as JSON)."""
        return self.run / "state.json"

    @property
    def wanted(self) -> Path:
        """The names of the services that the supervisor is to keep (a JSON list)."""
        return self.run / "wanted.json"

    def asked(self, service: str) -> Path:
        """Touched whenever somebody asks for a service that is started on demand."""
        return self.run / f"{service}.asked"

    @property
    def generators(self) -> Path:
        """What generators are to write, `<name>.json`."""
        return self.run / "generators"

    @property
    def west_registry(self) -> Path:
        """What the registry of the cluster west needs beside Kafka; none, where there is none."""
        return self.data / "registry-west"

    @property
    def lock(self) -> Path:
        """The file that a living supervisor holds locked."""
        return self.run / "supervisor.lock"

    def log(self, service: str) -> Path:
        """Return the log file of a service."""
        return self.logs / f"{service}.log"

    def scratch(self, service: str) -> Path:
        """Return where a service keeps its temporary files; emptied before each start."""
        return self.run / "scratch" / service

    @property
    def of_one_life(self) -> tuple[Path, ...]:
        """Return what a fresh start removes; keys and checkpoints are those of the old log."""
        profile, keys = profile_path(self.home), key_path(self.home, "root").parent
        checkpoints = notes_path(self.home, "any").parent
        errors = error_path(self.home, "any", "any", "any").parent
        made = (self.data, self.conf, self.run, self.secrets, self.endpoints, errors)
        known = (snapshots_path(self.home), names_path(self.home), self.home / known_ids.FILE)
        return (*made, *known, caller_path(self.home), profile, keys, checkpoints)

    @property
    def emptying(self) -> Path:
        """Stands there while a fresh start removes what it does, and after one that was cut off."""
        return self.home / "emptying"
