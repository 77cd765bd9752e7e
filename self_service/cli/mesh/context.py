"""The composition root of one command: from the home folder to logins, registry, log and image.

Everything is made when it is first asked for, so that a command pays only for what it uses.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mesh_events.errors import ConfigurationError
from mesh_events.meta import milliseconds
from mesh_events.settings import Profile, error_path, key_path
from self_service.cli.framework import completion
from self_service.cli.framework.exits import NotFoundError, UsageError
from self_service.cli.framework.finding import Finding
from self_service.cli.framework.output import note
from self_service.cli.framework.times import parse_time, stamp
from self_service.cli.mesh.callers import OPERATOR, Caller, acting_as, caller, current_domain
from self_service.cli.mesh.home import mesh_home
from self_service.cli.mesh.reachability import require_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from local_platform import Endpoints
    from mesh_events.emit import Emitter
    from mesh_events.kafka.connection import Connection
    from mesh_events.kafka.transport import Tls
    from mesh_events.read import LogReader
    from mesh_events.record import Record
    from mesh_events.schema.registry import Registry
    from processors.connect.cluster import ConnectCluster
    from projections.image import Image
    from projections.integrity.trusted_prefix import TrustedCheckpoints
    from self_service.cli.framework.options import Reading

Folded = TypeVar("Folded")
LONG_LOG = 5000
"""Offsets from which on reading the checkpoints' topic costs less than checking signatures."""


class Mesh:
    """One command's way to the mesh at `home` (default: `$SDM_HOME`)."""

    def __init__(self, home: Path | None = None) -> None:
        self.home = home.absolute() if home else mesh_home()
        self._latest: Image | None = None
        self.found: list[Finding] = []
        """What this command has found of a log that is not what was signed, or read once."""

    @cached_property
    def profile(self) -> Profile:
        """The mesh's public profile; raises ConfigurationError where there is none."""
        return Profile.load(self.home)

    @cached_property
    def endpoints(self) -> "Endpoints":
        """Where the local platform's servers answer; raises NoLocalMeshError."""
        from local_platform import Endpoints

        return Endpoints.load(self.home)

    @cached_property
    def tls(self) -> "Tls | None":
        """How the clusters' brokers are reached; raises ConfigurationError for a missing file."""
        return self.profile.tls(self.home)

    @cached_property
    def registry(self) -> "Registry":
        """The schema registry, for reading."""
        from mesh_events.schema.registry import Registry

        return Registry.at_home(self.home, self.profile)

    def connect_of(self, domain: str) -> "ConnectCluster":
        """A domain's Connect worker, started when it is asked, and its folder of secrets."""
        from processors.connect.cluster import ConnectCluster
        from processors.connect.secrets import ConnectSecrets
        from processors.settings import ConnectReach
        from self_service.cli.connect import workers

        ends, reach = self.endpoints, ConnectReach()
        api, group = workers.started(ends, domain)
        return ConnectCluster(
            api,
            ConnectSecrets(ends.connect_secrets),
            group,
            ends.shared_database,
            tuple(reach.connect_databases),
            reach.connect_classes,
        )

    def acting_as(self, domain: str | None) -> Caller:
        """Who speaks: the given or the current domain."""
        return acting_as(self.home, domain)

    @cached_property
    def reader(self) -> Caller:
        """Who reads the mesh's state: the current domain if it can log in, else the operator."""
        chosen = current_domain(self.home)
        candidates = [caller(chosen)] if chosen else []
        for one in (*candidates, OPERATOR):
            if self.password_path(self.profile.governance_cluster, one.principal).exists():
                return one
        raise ConfigurationError(
            f"no login for {self.profile.governance_cluster} under {self.home / 'secrets'}: "
            "run `sdm switch-domain NAME` with a domain that was registered here"
        )

    def password_path(self, cluster: str, principal: str) -> Path:
        """Where a principal's password for a cluster lies."""
        return self.home / "secrets" / cluster / principal

    def error_file(self, kind: str, thing: str, code: str | None) -> str | None:
        """The file with the full text of a failure, where this home is the worker's and has it."""
        path = error_path(self.home, kind, thing, code or "")
        return str(path) if code and path.exists() else None

    def password(self, cluster: str, principal: str, reference: str | None = None) -> str:
        """A principal's password; raises ConfigurationError that names the file."""
        from mesh_events.references import resolve

        path = self.password_path(cluster, principal)
        if path.exists() or reference is None:
            reference = f"file:{path}"
        if reference.startswith("file:") and not Path(reference.removeprefix("file:")).exists():
            raise ConfigurationError(
                f"no password of {principal} for cluster {cluster} at "
                f"{reference.removeprefix('file:')}: register it here, or copy the file"
            )
        return resolve(reference)

    def _require_home(self, image: "Image", cluster: str, principal: str) -> None:
        """Say where a domain logs in; it has no login elsewhere."""
        found = image.identity.domains.get(principal)
        if found is None or self.password_path(cluster, principal).exists():
            return
        if found.cluster != cluster:
            raise ConfigurationError(
                f"{principal} logs in to {found.cluster}, its home, and not to {cluster}: leave "
                f"out --cluster, or act as a domain of {cluster} (-d)"
            )

    def governance(self, who: Caller) -> "Connection":
        """How a caller logs in to the cluster that holds the log, to read."""
        return self._governance(who.principal)

    def _governance(self, principal: str) -> "Connection":
        from mesh_events.kafka.connection import Connection

        password = self.password(self.profile.governance_cluster, principal)
        require_answer(self.profile.bootstrap_servers, self.profile.governance_cluster)
        return Connection(self.profile.bootstrap_servers, principal, password, self.tls)

    def login(self, image: "Image", cluster: str, principal: str) -> "Connection":
        """How a principal logs in to a registered cluster."""
        from mesh_events.kafka.connection import Connection

        found = image.identity.clusters.get(cluster)
        if found is None:
            known = ", ".join(sorted(image.identity.clusters)) or "none"
            raise NotFoundError(f"there is no cluster {cluster}: known are {known}")
        if principal == OPERATOR.principal:
            return self.administration(image, cluster)
        credentials = image.identity.credentials.get((principal, cluster))
        reference = credentials.reference if credentials else None
        if credentials is None:
            self._require_home(image, cluster, principal)
        password = self.password(cluster, principal, reference)
        require_answer(found.bootstrap_servers, cluster)
        return Connection(found.bootstrap_servers, principal, password, self.tls)

    def administration(self, image: "Image", cluster: str) -> "Connection":
        """How the operator logs in to administer a registered cluster."""
        from mesh_events.kafka.connection import Connection
        from mesh_events.references import resolve

        found = image.identity.clusters[cluster]
        require_answer(found.bootstrap_servers, cluster)
        password = resolve(found.admin_password)
        return Connection(found.bootstrap_servers, found.admin_user, password, self.tls)

    @contextmanager
    def log(self, who: Caller | None = None, start: int | None = 0) -> "Iterator[LogReader]":
        """The governance log from `start`, closed at the end."""
        from mesh_events.read import LogReader

        with LogReader(self.governance(who or self.reader), start) as reader:
            yield reader

    def fold(
        self,
        reader: "LogReader",
        work: "Callable[[Iterator[Record], TrustedCheckpoints | None], Folded]",
    ) -> "Folded":
        """What `work` makes of the whole log and of the checkpoints that vouch for it.

        Where the log is not what they say, it is read again and every signature checked.
        """
        from projections.integrity.trusted_prefix import IntegrityError

        trusted = self.trusted(reader)
        try:
            return work(reader.to_end(), trusted)
        except IntegrityError as error:
            self.differs(
                Finding(error.first, error.code, str(error), error.last),
                f"{error}: checking every signature",
            )
        reader.partition.seek(0)
        return work(reader.to_end(), None)

    def differs(self, finding: Finding, told: str) -> None:
        """Tell and keep that the log, or a place of its checkpoints, is not as it was."""
        self.found.append(finding)
        note(f"{told}; see `sdm audit verify`")

    def trusted(self, reader: "LogReader") -> "TrustedCheckpoints | None":
        """What vouches for the log: the checkpoints of this home, or else the topic's."""
        from mesh_events.integrity.checkpoint import origin_of
        from mesh_events.integrity.places import checkpoints, read_file, read_topic
        from mesh_events.settings import notes_path
        from projections.integrity.chain import ChainBreakError, chained
        from projections.integrity.trusted_prefix import TrustedCheckpoints

        mesh = self.profile.mesh
        try:
            found = read_file(notes_path(self.home, mesh))
        except ConfigurationError:
            # they only save time
            found = []
        if not found and reader.partition.bounds()[1] > LONG_LOG:
            found = read_topic(self.governance(self.reader))
        try:
            path = chained(origin_of(mesh), checkpoints(found)).path()
        except ChainBreakError as error:
            self.differs(
                Finding(error.offset, error.code, str(error)),
                f"the checkpoints are not valid: {error}",
            )
            return None
        return TrustedCheckpoints(path, self.profile.root_key) if path else None

    @contextmanager
    def emitter(self, who: Caller, actor: str) -> "Iterator[Emitter]":
        """The reporter of a caller, closed at the end."""
        from mesh_events.emit import Emitter
        from mesh_events.signing import SigningKey

        key = SigningKey.load(key_path(self.home, who.key))
        connection = self._governance(who.writer)
        with Emitter(
            connection,
            self.registry,
            key,
            mesh=self.profile.keys,
            domain=who.domain,
            actor=actor,
        ) as emitter:
            yield emitter

    def require_governor(self) -> None:
        """Raise ConfigurationError if the state that was read last has revoked the profile's key.

        Who holds it could answer in the governor's name.
        """
        if self._latest is None:
            return
        public = self.profile.governor_key
        known = self._latest.identity.keys.get(public)
        if known is not None and known.revoked is not None:
            raise ConfigurationError(
                f"mesh.json names {public} as the governor's key, which was revoked at offset "
                f"{known.revoked}: copy the mesh's new mesh.json to {self.home}"
            )

    def image(self, reading: "Reading | None" = None, *, whole_log: bool = False) -> "Image":
        """The mesh's state: now, or where `reading` says; tells the latter on stderr.

        With `whole_log` it is replayed from the first record, and no snapshot is believed.
        Raises NotFoundError where the log is shorter than the wanted offset.
        """
        at_offset, as_of = _position(reading)
        # before 1970 there was no log: the same as its beginning
        end = None if as_of is None else max(0, as_of)
        image = self._state(at_offset, end, whole_log=whole_log)
        if at_offset is not None and image.offset < at_offset:
            self._require_offset(at_offset)
            # the record may have come since; else the mark of a transaction stands there
            image = self._state(at_offset, end, whole_log=whole_log)
        if at_offset is None and as_of is None:
            self._latest = image
            completion.remember(self.home, image)
        elif image.offset < 0:
            note(f"the log had no record yet at {stamp(as_of)}")
        else:
            note(f"as of offset {image.offset}, {stamp(image.time)}")
        return image

    def _state(self, at_offset: int | None, as_of: int | None, *, whole_log: bool) -> "Image":
        from self_service.cli.mesh.recall import replayed, state

        if not whole_log:
            return state(self, at_offset, as_of)
        with self.log() as reader:
            return replayed(self, reader, at_offset, as_of)

    def _require_offset(self, offset: int) -> None:
        """Raise NotFoundError behind the log's end; marks of transactions are no records."""
        with self.log(start=None) as reader:
            end = reader.partition.bounds()[1]
        if offset >= end:
            raise NotFoundError(f"the log has no offset {offset}: it ends at {end - 1}")


def _position(reading: "Reading | None") -> tuple[int | None, int | None]:
    """(offset, ms) that a read asks for; both None for now."""
    if reading is None:
        return None, None
    if reading.as_of is not None and reading.at_offset is not None:
        raise UsageError("--as-of and --at-offset exclude each other: give one of them")
    if reading.as_of is None:
        return reading.at_offset, None
    now = datetime.now(UTC)
    wanted = parse_time(reading.as_of, now)
    if wanted > now:
        note(f"{stamp(wanted)} is in the future: showing the present state")
    return None, milliseconds(wanted)
