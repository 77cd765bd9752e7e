"""A connector's new config on its way to the log: judged here first, its secret put in place."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mesh_events.connectors import ConnectorAdded, ConnectorIntent, ConnectorUpdated
from mesh_events.errors import RefusedError
from mesh_events.intents import domain_of
from mesh_events.references import resolve
from processors.connect.captured_tables import require_tables
from processors.connect.cluster import ConnectCluster
from processors.connect.sink_tables import require_sink
from projections.connectors import config as connector_config
from projections.connectors.settings import KEYLESS
from projections.connectors.state import State
from projections.connectors.tables import place_of, slot_of, tables
from projections.connectors.values import items
from projections.deciding.verdict import Refusal
from projections.image import Image
from projections.rules import names
from projections.rules.connectors import require_allowed
from self_service.cli.connect.submitting import settings_of, shown, submit_about
from self_service.cli.framework.exits import UsageError
from self_service.cli.framework.options import SubmitOptions
from self_service.cli.framework.output import Detail, Listing, note, show
from self_service.cli.mesh import lookup
from self_service.cli.mesh.context import Mesh
from self_service.cli.streaming.wording import reading_application

_NOT_ASKED = {
    connector_config.POSTGRES: "the database cannot be reached from here. It was not checked "
    "whether its tables log whole rows of updates and deletes, have a key, and use types that "
    "arrive unchanged: Connect reports none of this. docs/how-to/connect.md shows what to check",
    connector_config.JDBC_SINK: "it was not checked from here whether the database's table takes "
    "the records: Connect reports errors when it runs",
}
"""What nobody has looked at where the database was not asked."""


@contextmanager
def _refusing() -> Iterator[None]:
    """What the governor's rules refuse is refused here, with their code and sentence."""
    try:
        yield
    except Refusal as refusal:
        raise RefusedError(refusal.rejected.code, refusal.rejected.reason) from refusal


@dataclass(frozen=True, slots=True)
class Change:
    """A connector as it is to be; `password` is a reference to one that is to be kept for it.

    `since` is the generation of which the config was made, None for a config that is whole by
    itself.
    """

    mesh: Mesh
    options: SubmitOptions
    connector: str
    config: dict[str, str]
    application: str | None
    password: str | None
    since: int | None = None

    def settle(self, *, dry_run: bool, description: str = "") -> None:
        """Check it, say it, and show what became of it."""
        image = self.mesh.image()
        self._require_fit(image)
        connect = self.mesh.connect_of(domain_of(self.connector))
        application = self.application or self._reader(image)
        self._require_allowed(image, application)
        if self.password is not None and not (self.options.wait or dry_run):
            raise UsageError("--password waits for the decision: leave out --no-wait")
        config, withdraw = self._with_password(connect)
        try:
            if dry_run:
                self._tell_faults(connect, config, image)
            else:
                config = self._with_tables(connect, config, image, starts=self.options.wait)
        except BaseException:
            withdraw()
            raise
        if dry_run:
            withdraw()
        else:
            self._submit(image, config, application, description, refused=withdraw)

    def _with_password(self, connect: ConnectCluster) -> tuple[dict[str, str], Callable[[], None]]:
        """The config with its password, which is stored, and what removes that again."""
        if self.password is None:
            return self.config, lambda: None
        place = connector_config.SECRET_SETTINGS.get(self.config.get("connector.class", ""))
        if place is None:
            raise UsageError(
                "--password: the mesh does not know which setting of this class takes a password"
            )
        reference = connect.secrets.store(self.connector, resolve(self.password))
        config = {**self.config, place: reference}
        return config, lambda: connect.secrets.remove(self.connector, reference)

    def _submit(
        self,
        image: Image,
        config: dict[str, str],
        application: str | None,
        description: str,
        *,
        refused: Callable[[], None],
    ) -> None:
        known = image.connectors.get(self.connector)
        kind: type[ConnectorIntent] = ConnectorAdded
        fields: dict[str, Any] = {"config": config, "application": application}
        if known is not None and known.stands:
            kind = ConnectorUpdated
            fields["since"] = self.since
        else:
            fields["description"] = description
        submitted = submit_about(
            self.mesh,
            self.options,
            self.connector,
            kind,
            fields,
            refused=refused,
            active=known is None or not known.stands or known.desired == "RUNNING",
        )
        shown(self.options, self.connector, submitted, {"config": settings_of(config)})

    def _require_fit(self, image: Image) -> None:
        with _refusing():
            names.dotted(self.connector, "a connector")
        domain = domain_of(self.connector)
        who = self.mesh.acting_as(self.options.domain).domain
        if who != domain:
            raise RefusedError(
                "not_your_domain", f"{who} may not change {self.connector}: only {domain} may"
            )
        lookup.domain(image, domain)

    def _reader(self, image: Image) -> str | None:
        """The one application that may read all topics of a sink."""
        domain = self.connector.partition(".")[0]
        return reading_application(image, domain, connector_config.reads(self.config))

    def _require_allowed(self, image: Image, application: str | None) -> None:
        """What the governor would refuse is not said: a secret would stand on the log for ever."""
        with _refusing():
            require_allowed(image, self.connector, self.config, application)

    def _with_tables(
        self, connect: ConnectCluster, config: dict[str, str], image: Image, *, starts: bool = False
    ) -> dict[str, str]:
        """The config with what the database itself says of its tables, which it may refuse.

        With `starts` the worker runs then, and a database that has not answered was asked again: a
        start on this machine may leave nothing for another program.
        """
        found, asked = self._looked_up(connect, config, image)
        if starts:
            # the check would wait for its start a minute at most, and could not say why
            connect.api.worker()
            if not asked:
                found, asked = self._looked_up(connect, config, image)
        if not asked:
            note(_NOT_ASKED[config["connector.class"]])
        return found

    def _looked_up(
        self, connect: ConnectCluster, config: dict[str, str], image: Image
    ) -> tuple[dict[str, str], bool]:
        """The config with what the database says, and whether it was asked, or need not be.

        It is asked from here: no server of the mesh calls what a config names.
        """
        password = connect.password(self.connector, config)
        match config.get("connector.class"):
            case connector_config.POSTGRES:
                found = require_tables(
                    config, password, slot_of(self.connector), self._captured(image, config)
                )
                asked = found is not None
                for one in found.told if found else ():
                    note(one)
                keyless = found and found.keyless
                return self._with_keyless(config, image, keyless, asked=asked), asked
            case connector_config.JDBC_SINK:
                reached = connect.may_reach(self.connector, config)
                return config, reached and require_sink(config, password)
        return config, True

    def _with_keyless(
        self, config: dict[str, str], image: Image, keyless: list[str] | None, *, asked: bool
    ) -> dict[str, str]:
        """The config with the tables that have no primary key, but for those that had one.

        What this command sets is kept. Where the database was not asked nothing is known of tables
        that the connector has not captured.
        """
        known = image.connectors.get(self.connector)
        before = known.config if known is not None and known.stands else {}
        if config.get(KEYLESS) != before.get(KEYLESS):
            return config
        is_same = place_of(before) == place_of(config)
        if not asked and not (is_same and tables(before) == tables(config)):
            return {name: value for name, value in config.items() if name != KEYLESS}
        if keyless is None:
            return config
        had = set[str]()
        if is_same and KEYLESS in before:
            had = set(tables(before)).difference(items(before[KEYLESS]))
        return {**config, KEYLESS: ",".join(one for one in keyless if one not in had)}

    def _captured(self, image: Image, config: dict[str, str]) -> list[str]:
        """The tables that the connector captures already, from the same database.

        One that does not run has a publication of what it captured before its config was changed.
        """
        known = image.connectors.get(self.connector)
        if known is None or known.state is not State.ACTIVE:
            return []
        if place_of(known.config) != place_of(config):
            return []
        return tables(known.config)

    def _tell_faults(self, connect: ConnectCluster, config: dict[str, str], image: Image) -> None:
        """What the connector says of its config, which is not said to the mesh."""
        connect.api.plugin(self.connector, config)
        config = self._with_tables(connect, config, image)
        faults = connect.faults(self.connector, config)
        items = [{"setting": name, "fault": fault} for name, fault in sorted(faults.items())]
        fields = {"connector": self.connector, "valid": not faults}
        faulty = Listing(("setting", "fault"), items, "none")
        parts = {"config": settings_of(config), "faults": faulty}
        show(Detail(fields, parts), self.options.output)
        connect.require_sound(self.connector, config)
