"""Rules for connectors: a domain's connectors touch its own topics, and what is granted to it.

Kafka Connect knows no owners: who may use its API may change every connector. So a config is
judged here, before Connect sees it, whoever says it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from immutables import Map

from mesh_events.connectors import (
    OWN_SECRET,
    SHARED_SECRET,
    Configured,
    ConnectorAdded,
    ConnectorDeleted,
    ConnectorIntent,
    ConnectorStarted,
    ConnectorStopped,
    ConnectorUpdated,
)
from mesh_events.intents import domain_of
from projections.connectors import config as connector_config
from projections.connectors import table_use, tables, task_use
from projections.connectors.state import Connector
from projections.deciding.verdict import DecisionContext, Verdict, require
from projections.identity import Role
from projections.image import Image
from projections.lineage import steps
from projections.lineage.sources import not_granted, way_back
from projections.lineage.topic_use import fillers
from projections.quotas.kinds import Kind
from projections.rules import life, names
from projections.rules.parties import require_application
from projections.rules.quotas import require_record, require_room
from projections.rules.registry import judge

CONNECTOR_SOUND = "connector_sound"
_SHOWN = 5
"""Tables that a refusal names."""


@judge.register
def _(intent: ConnectorAdded, context: DecisionContext) -> Verdict:
    names.dotted(intent.connector, "a connector")
    domain = life.own(context, intent.connector, "connectors")
    names.note(intent.description, "the description")
    before = context.image.connectors.get(intent.connector)
    require(
        before is None or not before.stands,
        "connector_exists",
        f"the connector {intent.connector} exists already: update it, or delete it first",
    )
    require(
        before is None or before.is_over,
        "connector_deleting",
        f"the connector {intent.connector} was deleted and is not gone yet: wait for DELETED",
    )
    if before is not None:
        _require_read_already(before, intent)
    require_allowed(context.image, intent.connector, intent.config, intent.application)
    kept = 1 if before is None else _leaves(context, before, intent)
    require_room(context, Kind.CONNECTORS, domain, kept)
    return context.after(CONNECTOR_SOUND)


@judge.register
def _(intent: ConnectorUpdated, context: DecisionContext) -> Verdict:
    domain = life.own(context, intent.connector, "connectors")
    connector = _standing(context, intent)
    require(
        intent.since in (None, connector.generation),
        "connector_changed",
        f"{connector.id} was changed meanwhile, at offset {connector.generation}: look at it, and "
        "update it again",
    )
    for setting in ("connector.class", "topics"):
        before, after = setting in connector.config, setting in intent.config
        same = connector.config.get(setting) == intent.config.get(setting)
        require(
            same or (setting == "topics" and before and after),
            "connector_differs",
            f"{setting} of {connector.id} cannot change from "
            f"{connector.config.get(setting, 'nothing')} to "
            f"{intent.config.get(setting, 'nothing')}: add another connector for it",
        )
    _require_read_already(connector, intent)
    require_allowed(context.image, intent.connector, intent.config, intent.application)
    require_record(context, Kind.CONNECTORS, domain, _leaves(context, connector, intent))
    return context.after(CONNECTOR_SOUND)


@judge.register
def _(intent: ConnectorStopped, context: DecisionContext) -> Verdict:
    return life.stop(context, _directed(context, intent), "connector", intent.reason)


@judge.register
def _(intent: ConnectorStarted, context: DecisionContext) -> Verdict:
    return life.start(context, _directed(context, intent), "connector", intent.reason)


@judge.register
def _(intent: ConnectorDeleted, context: DecisionContext) -> Verdict:
    return life.delete(context, _directed(context, intent), "connector", intent.reason)


def _require_read_already(before: Connector, intent: Configured) -> None:
    """Raise Refusal for tables that a capture would have to read, and would not.

    One of that name that was deleted goes on from its positions.
    """
    more = connector_config.read_anew(before.config, intent.config)
    require(
        not more,
        "connector_differs",
        f"{before.id} reads its tables once: add a connector of another name for {more}",
    )


def _leaves(context: DecisionContext, before: Connector, intent: Configured) -> int:
    """How many steps of the config before it are to be kept on record."""
    after = replace(before, config=Map(intent.config), application=intent.application)
    return steps.leaves(context.image.replaced, before, after)


def _directed(context: DecisionContext, intent: ConnectorIntent) -> Connector:
    """The connector, if the signer's domain may stop, start or delete it."""
    if context.key.role is not Role.OPERATOR:
        life.own(context, intent.connector, "connectors")
    return _standing(context, intent)


def _standing(context: DecisionContext, intent: ConnectorIntent) -> Connector:
    connector = context.image.connectors.get(intent.connector)
    require(
        connector is not None and connector.stands,
        "unknown_connector",
        f"there is no connector {intent.connector}: list the connectors",
    )
    assert connector is not None  # noqa: S101 - for the type checker; `require` has refused
    return connector


def require_allowed(
    image: Image, connector: str, config: Mapping[str, str], application: str | None
) -> None:
    """The config is one that the domain may have; what only Connect can tell is a check.

    Raises Refusal.
    """
    domain = domain_of(connector)
    _sized(connector, config)
    secrets = connector_config.plain_secrets(config)
    require(
        not secrets,
        "secret_in_config",
        f"{', '.join(secrets)} must be a reference such as {OWN_SECRET}, never the secret itself",
    )
    logins = connector_config.own_logins(config)
    require(
        not logins,
        "foreign_login",
        f"leave out {', '.join(logins)}: a connector works with a login of its own, which is put "
        "in by itself",
    )
    wrong, kind = connector_config.foreign_references(config), config["connector.class"]
    place = connector_config.SECRET_SETTINGS.get(kind)
    may = f"only {place}" if place else f"no setting of {kind}"
    require(
        not wrong,
        "foreign_secret",
        f"{', '.join(wrong)}: {may} may name a secret, as the whole value, and only {OWN_SECRET} "
        f"or {SHARED_SECRET}",
    )
    foreign = connector_config.foreign_topics(config, domain)
    require(
        not foreign,
        "foreign_topic",
        f"{', '.join(foreign)}: {domain}'s own topics begin with '{domain}.'",
    )
    _allowed(image, connector, config)
    _reads(image, connector, config, application)
    _fills(image, connector, config)
    _uses(image, connector, config)
    _runs(image, connector, config)


def _allowed(image: Image, connector: str, config: Mapping[str, str]) -> None:
    """Every setting is one that its class may have, and names nothing of another connector's."""
    wrong = connector_config.not_allowed(config)
    require(
        wrong is None,
        "setting_not_allowed",
        f"{connector}: {wrong}: docs/how-to/connect.md has what is allowed",
    )
    before = image.connectors.get(connector)
    foreign = tables.foreign_names(config, connector, before.config if before is not None else {})
    require(
        not foreign,
        "foreign_slot",
        f"{connector}: {', '.join(foreign)}: leave it out: a connector has a slot and a "
        f"publication of its own, {tables.slot_of(connector)}",
    )


def _sized(connector: str, config: Mapping[str, str]) -> None:
    """Refuse what is too large to be judged, before anything else is read of it."""
    most, longest = connector_config.MOST_SETTINGS, connector_config.LONGEST_CONFIG
    of_name, of_value = connector_config.LONGEST_NAME, connector_config.LONGEST_VALUE
    require(
        len(config) <= most and connector_config.size(config) <= longest,
        "config_too_large",
        f"{connector}: its config has {len(config)} settings of {connector_config.size(config)} "
        f"characters: at most {most} settings of {longest} characters together are allowed",
    )
    require(
        config
        and all(
            0 < len(name) <= of_name and len(value) <= of_value for name, value in config.items()
        ),
        "invalid_connector",
        f"{connector}: give 1 to {most} settings, names of up to {of_name} and values of up to "
        f"{of_value} characters",
    )
    unfit = connector_config.unfit(config)
    require(unfit is None, "invalid_connector", f"{connector}: {unfit}")


def _reads(
    image: Image, connector: str, config: Mapping[str, str], application: str | None
) -> None:
    """A sink names its topics, and each is the domain's own or granted."""
    domain = domain_of(connector)
    require(
        "topics.regex" not in config,
        "invalid_connector",
        f"{connector}: topics.regex: name each topic in `topics`, so that its right to read "
        "can be given",
    )
    require_application(image, domain, application)
    topics = connector_config.reads(config)
    _few(connector, topics)
    for topic in topics:
        names.legal_topic(topic)
    cluster = image.identity.domains[domain].cluster
    missing = not_granted(image, domain, application, cluster, topics)
    require(
        not missing,
        "source_not_granted",
        f"{', '.join(missing)} on {cluster} is not granted to "
        f"{application or f'an application of {domain}'}: request access, and name the "
        "application that has it",
    )


def _few(connector: str, topics: Sequence[str]) -> None:
    require(
        len(topics) <= connector_config.MOST_TOPICS,
        "invalid_connector",
        f"{connector}: it has more than {connector_config.MOST_TOPICS} topics: make several of it",
    )


def _fills(image: Image, connector: str, config: Mapping[str, str]) -> None:
    """Nothing else that the mesh runs fills the topics: each record would come twice."""
    cluster = image.identity.domains[domain_of(connector)].cluster
    wanted, reads = connector_config.writes(config), connector_config.reads(config)
    _few(connector, wanted)
    merged = tables.merged(config)
    doubles = "; ".join(
        f"{' and '.join(sources)} would both fill {topic}" for topic, sources in merged
    )
    kept = tables.route_with_schema(config.get("topic.prefix", ""))
    require(
        not merged,
        "topic_shared",
        f"{doubles}, a row of one in the place of another's: capture one of them by another "
        "connector with another route or prefix; two tables of one name keep their schemas in the "
        f"topics' names with a RegexRouter of regex={kept}",
    )
    for topic in wanted:
        names.legal_topic(topic)
    filled = fillers(image.topic_use, cluster, wanted, ("connector", connector))
    other = min((others[0] for others in filled.values()), default="")
    shared = sorted(topic for topic, others in filled.items() if other in others)
    require(
        not filled,
        "topic_filled",
        f"{', '.join(shared[:_SHOWN])} is filled by {other} already, so that records would "
        f"come twice: choose other topics, or delete {other} first",
    )
    again = connector_config.clash(wanted, reads)
    require(
        not again,
        "topic_filled",
        f"{', '.join(sorted(again))} is read and filled by {connector}, without end: choose "
        "another topic",
    )
    read = [(cluster, topic) for topic in reads]
    dead = config.get(connector_config.DEAD_LETTERS) if reads else None
    # not by what its config was before
    way = way_back(image, (cluster, dead), read, but=connector) if dead else []
    require(
        not way,
        "topic_filled",
        f"dead letters of {connector} would come back to it, without end: "
        f"{' > '.join(topic for _, topic in way)}: choose another topic for them",
    )


def _uses(image: Image, connector: str, config: Mapping[str, str]) -> None:
    """No table of a database is used by connectors of two domains.

    Who captures another domain's table reads it without a grant; who fills it changes what that
    domain publishes.
    """
    taken = table_use.taken(image.table_use, config, domain_of(connector))
    shown = [f"{table.title} by {domain}" for table, domain in taken[:_SHOWN]]
    more = f", and {len(taken) - _SHOWN} more" if len(taken) > _SHOWN else ""
    require(
        not taken,
        "table_taken",
        f"connectors of another domain capture or fill what {connector} names: "
        f"{', '.join(shown)}{more}: request access to a product made of it, or choose another "
        "table (a sink's with collection.name.format)",
    )


def _runs(image: Image, connector: str, config: Mapping[str, str]) -> None:
    """A domain's connectors have no more tasks together than it may have connectors.

    Each task takes of Connect's memory, and connections of a database.
    """
    domain, most = domain_of(connector), image.bounds.quotas.connectors
    others = image.task_use.get(domain, 0) - task_use.tasks_of(image.connectors.get(connector))
    wanted = connector_config.tasks(config) or 1
    require(
        others + wanted <= most,
        "quota_exceeded",
        f"{connector}: the other connectors of {domain} may have {others} tasks, and this one "
        f"{wanted}: together {most} are allowed, so lower tasks.max, delete a connector that is "
        f"not needed, or ask the operator to raise {Kind.CONNECTORS.setting}",
    )
