"""Connectors on the log: what domains want Kafka Connect to run for them, and what came of it.

A config names a secret by reference only: `${secret:own/<version>}` is the connector's own, which
is stored where its Connect worker finds it; `${secret:shared}` is the password of the one database
that the platform shares among domains. Nothing else may be referred to.
"""

import re
import secrets

from pydantic import Field

from mesh_events.facts import Fact
from mesh_events.intents import Intent

OWN_SECRET, SHARED_SECRET = "${secret:own}", "${secret:shared}"
"""The connector's own secret, whichever that is, and the shared one."""
_OWN = re.compile(r"\$\{secret:own(?:/(?P<version>[0-9a-f]{16}))?\}")


def new_own_secret() -> str:
    """A reference that names a version of an own secret which no config has named yet."""
    return f"${{secret:own/{secrets.token_hex(8)}}}"


def version_of(reference: str) -> str | None:
    """The version of the own secret that a reference names, empty without one; else None."""
    found = _OWN.fullmatch(reference)
    return None if found is None else found["version"] or ""


def is_reference(value: str) -> bool:
    """Whether a setting's value names a secret that a connector may have."""
    return value == SHARED_SECRET or version_of(value) is not None


class ConnectorIntent(Intent):
    """What all intents about a connector name."""

    connector: str = Field(description="Connector id, <domain>.<name>")

    @property
    def key(self) -> str:
        """`connector/<domain>/<name>`."""
        return f"connector/{self.connector.replace('.', '/', 1)}"


class Configured(ConnectorIntent):
    """A connector's config: what adding and updating one have in common."""

    config: dict[str, str] = Field(
        description="Setting -> value as Kafka Connect takes it, without logins; secrets by "
        "reference"
    )
    application: str | None = Field(
        default=None, description="Application under whose grants other domains' topics are read"
    )


class ConnectorAdded(Configured):
    """Emitted by a domain: from now on this connector runs for the domain."""

    description: str = Field(default="", description="What it is for")


class ConnectorUpdated(Configured):
    """Emitted by a domain: another config goes on where the one before it stands."""

    since: int | None = Field(
        default=None,
        description="Generation of the connector from which the config was made: where it has "
        "another one by then, somebody else changed it; none where that does not matter",
    )


class ConnectorStopped(ConnectorIntent):
    """Emitted by the domain or the operator: the connector stands still, its position stays."""

    reason: str = Field(default="", description="Why, for the audit")


class ConnectorStarted(ConnectorIntent):
    """Emitted by the domain or the operator: a connector that stood still goes on."""

    reason: str = Field(default="", description="Why, for the audit")


class ConnectorDeleted(ConnectorIntent):
    """Emitted by the domain or the operator: the connector ends; its topics stay the domain's."""

    reason: str = Field(default="", description="Why, for the audit")


class ConnectorFact(Fact):
    """What all facts about a connector name."""

    connector: str = Field(description="Connector id, <domain>.<name>")
    generation: int = Field(description="Generation of the connector that this satisfies")

    @property
    def key(self) -> str:
        """`connector/<domain>/<name>`."""
        return f"connector/{self.connector.replace('.', '/', 1)}"


class ConnectorActivated(ConnectorFact):
    """The connector and all of its tasks run; `restarts` tells how often they had to be helped."""

    principal: str = Field(description="Principal as which it reads and writes")
    run: str = Field(description="OpenLineage run id")
    tasks: int = Field(description="How many tasks run")
    restarts: int = Field(description="Restarts by the controller since it last ran")
    topic_ids: dict[str, str] = Field(
        default_factory=dict, description="Of a sink: topic that it reads -> Kafka's id of it"
    )
    partitions: dict[str, int] = Field(
        default_factory=dict,
        description="Of a sink that replaces rows: topic that it reads -> how many partitions it "
        "has",
    )


class ConnectorFailed(ConnectorFact):
    """The connector or a task of it does not run; its controller restarts it, ever less often."""

    code: str = Field(description="Stable code of the failure")
    reason: str = Field(description="What happened and the next step")
    tasks: list[int] = Field(
        default_factory=list, description="Tasks that have failed; empty: the connector itself"
    )
    topic_ids: dict[str, str] = Field(
        default_factory=dict,
        description="Of a sink that was started before: topic that it read -> Kafka's id of it",
    )
    partitions: dict[str, int] = Field(
        default_factory=dict,
        description="Of one that replaces rows: topic that it read -> how many partitions it had",
    )


class ConnectorHalted(ConnectorFact):
    """The connector stands still as desired, or is deleted, and has no right any more."""


CONNECTOR_INTENTS: tuple[type[Intent], ...] = (
    ConnectorAdded,
    ConnectorUpdated,
    ConnectorStopped,
    ConnectorStarted,
    ConnectorDeleted,
)
CONNECTOR_FACTS: tuple[type[Fact], ...] = (
    ConnectorActivated,
    ConnectorFailed,
    ConnectorHalted,
)
