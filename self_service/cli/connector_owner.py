"""Whose connector it is, and that it writes its domain's topics only: told before Kafka refuses.

Kafka Connect knows no owners: everybody who may use a worker may change all of its connectors.
"""

from collections.abc import Mapping

from mesh_events.errors import RefusedError
from mesh_events.intents import domain_of
from mesh_events.meta import MESH_DOMAIN
from self_service.cli import connect_login

_TOPIC_SETTINGS = ("topic", "topic.prefix", "kafka.topic", "topic.heartbeat.prefix")


def owner_of(config: Mapping[str, str]) -> str | None:
    """The domain of a deployed connector, by its login or else its topics; None if unknown."""
    return connect_login.domain_of(config) or domain_of(config.get("topic.prefix", "")) or None


def require_owner(connector: str, config: Mapping[str, str], domain: str) -> None:
    """Refuse to change or drop another domain's connector; the operator may drop any."""
    owner = owner_of(config)
    if domain not in (owner, MESH_DOMAIN):
        whose = f"{owner}'s" if owner else "nobody's in this mesh"
        raise RefusedError(
            "not_your_domain",
            f"the connector {connector} is {whose}: ask {owner or 'the operator'}, or choose "
            "another name",
        )


def require_own_topics(config: Mapping[str, str], domain: str) -> None:
    """Refuse a config that names topics outside of the domain's prefix `<domain>.`.

    What a config does not name as such, such as a transform's result, Kafka refuses later: the
    connector works with its domain's login.
    """
    foreign = [
        f"{name}={config[name]}"
        for name in _TOPIC_SETTINGS
        if name in config and not f"{config[name]}.".startswith(f"{domain}.")
    ]
    if foreign:
        raise RefusedError(
            "foreign_topic",
            f"{', '.join(foreign)}: {domain}'s own topics begin with '{domain}.'",
        )
