"""Every refusal of the rules as a table: who says what, and the code that answers.

The state is that of `test_rules.mesh`: east's product is read by west over a link and by north on
the spot, `west.two` has asked for it, `north.two` was denied. `east.copied` fills a topic from it.
The connector `east.shares` has a publication of west's, as `east.shared` had, which is dropped.
"""

from typing import Any, NamedTuple

from mesh_events import connectors, intents, statements
from mesh_events.intents import Quality
from mesh_events.meta import Event
from projections.connectors import config as connector_config
from tests import sample_history as story
from tests.memory_log import EPOCH_MS, at, key

ASKED, DENIED, GRANTED = "<west.two's request>", "<north.two's request>", "<west.app's grant>"
"""Stand for the ids of requests, which are known once the state is made."""


class Refusal(NamedTuple):
    """What `sender` says with `fields` is refused with `code`."""

    code: str
    sender: str
    kind: type[Event]
    fields: dict[str, Any]


def _identity() -> list[Refusal]:
    def cluster(code: str, sender: str = "mesh", **changes: Any) -> Refusal:
        fields = {**story.cluster("third"), **changes}
        return Refusal(code, sender, intents.ClusterRegistered, fields)

    def domain(code: str, sender: str = "mesh", **changes: Any) -> Refusal:
        fields = {**story.domain("south", "east"), **changes}
        return Refusal(code, sender, intents.DomainRegistered, fields)

    def added(code: str, sender: str, name: str, public: str, proof: str = "") -> Refusal:
        fields = {"domain": name, "public_key": public, "proof": proof}
        return Refusal(code, sender, intents.KeyRegistered, fields)

    def ended(code: str, sender: str, name: str, public: str, reason: str = "lost") -> Refusal:
        fields = {"domain": name, "public_key": public, "reason": reason}
        return Refusal(code, sender, intents.KeyRevoked, fields)

    def freeze(code: str, sender: str, name: str, **changes: Any) -> Refusal:
        tomorrow = at(EPOCH_MS + 86_400_000)
        fields = {"domain": name, "until": tomorrow, "reason": "stolen key", **changes}
        return Refusal(code, sender, intents.DomainFrozen, fields)

    def thaw(code: str, sender: str, name: str, reason: str = "over") -> Refusal:
        fields = {"domain": name, "reason": reason}
        return Refusal(code, sender, intents.DomainThawed, fields)

    def application(code: str, name: str, sender: str = "west") -> Refusal:
        return Refusal(code, sender, intents.ApplicationRegistered, {"application": name})

    def login(code: str, sender: str, principal: str, where: str) -> Refusal:
        fields = {"principal": principal, "cluster": where}
        return Refusal(code, sender, intents.CredentialsRequested, fields)

    fresh, east, root = (key(name).public for name in ("fresh", "east", "root"))
    own_registry = {
        "registry_url": "https://west.invalid/apis/ccompat/v7",
        "registry_user": "admin",
        "registry_password": "env:WEST_REGISTRY",
    }
    urls = ("west.invalid:80", "http://a:b@west.invalid", "http://west.invalid/\nx", "file:///x")
    return [
        cluster("operators_only", "east"),
        cluster("invalid_name", cluster="Third"),
        cluster("invalid_name", cluster="third\n"),
        cluster("reserved_name", cluster="mesh"),
        *(
            cluster("reserved_name", cluster=name)
            for name in ("connectors", "postgres", "spark", "spark-east", "registry-west")
        ),
        cluster("missing_text", bootstrap_servers=" "),
        cluster("missing_text", admin_user=" "),
        *(
            cluster("administrator_login", admin_user=user)
            for user in ("east", "west.app", "mesh.operator", "mesh.connect.east.shop")
        ),
        cluster("secret_in_event", admin_password="hunter2"),
        cluster("secret_in_event", admin_password="env:A\nB"),
        cluster("missing_text", registry_url="http://west.invalid"),
        cluster("missing_text", **{**own_registry, "registry_user": " "}),
        cluster("secret_in_event", **{**own_registry, "registry_password": "hunter2"}),
        *(cluster("invalid_address", **{**own_registry, "registry_url": url}) for url in urls),
        domain("operators_only", "east"),
        domain("invalid_name", domain="so.uth"),
        domain("invalid_name", domain="1south"),
        domain("invalid_name", domain="s" * 64),
        *(domain("reserved_name", domain=name) for name in ("mesh", "admin", "anonymous")),
        domain("missing_text", owner=""),
        domain("text_too_long", owner="o" * 4001),
        domain("domain_exists", domain="east"),
        domain("unknown_cluster", cluster="third"),
        domain("invalid_key", public_key="short"),
        domain("invalid_key", public_key=fresh + "="),
        domain("weak_key", public_key="A" * 43),
        domain("invalid_proof", proof=""),
        domain("invalid_proof", public_key=fresh),
        domain("key_exists", public_key=east),
        domain("key_exists", public_key=key("governor").public),
        added("not_your_domain", "west", "east", fresh),
        added("unknown_domain", "mesh", "nowhere", fresh),
        added("unknown_domain", "mesh", "mesh", fresh),
        added("invalid_key", "east", "east", "x" * 43),
        added("invalid_proof", "east", "east", fresh),
        added("invalid_proof", "east", "east", fresh, key("fresh").prove(root, "west")),
        added("weak_key", "east", "east", "A" * 43),
        added("key_exists", "west", "west", east),
        added("key_exists", "east", "east", key("root").public),
        ended("not_your_domain", "west", "east", east),
        ended("unknown_domain", "mesh", "mesh", key("governor").public),
        ended("missing_text", "east", "east", east, reason=""),
        ended("unknown_key", "east", "east", fresh),
        ended("unknown_key", "east", "east", key("west").public),
        freeze("not_your_domain", "west", "east"),
        freeze("not_your_domain", "west", "mesh"),
        freeze("unknown_domain", "mesh", "nowhere"),
        freeze("missing_text", "mesh", "east", reason=" "),
        freeze("invalid_end", "east", "east", until=at(EPOCH_MS)),
        freeze("invalid_end", "mesh", "east", until=at(EPOCH_MS + 400 * 86_400_000)),
        thaw("operators_only", "east", "east"),
        thaw("unknown_domain", "mesh", "nowhere"),
        thaw("missing_text", "mesh", "east", reason=""),
        thaw("not_frozen", "mesh", "east"),
        *(
            Refusal(code, sender, kind, {"domain": name, "reason": reason})
            for kind in (intents.DomainQuarantined, intents.DomainReleased)
            for code, sender, name, reason in (
                ("operators_only", "east", "east", "so"),
                ("unknown_domain", "mesh", "mesh", "so"),
                ("missing_text", "mesh", "east", ""),
            )
        ),
        Refusal(
            "not_quarantined", "mesh", intents.DomainReleased, {"domain": "east", "reason": "so"}
        ),
        application("invalid_name", "west"),
        application("invalid_name", "west."),
        application("invalid_name", "west.a.b"),
        application("invalid_name", "west.*"),
        application("not_your_domain", "east.app"),
        application("unknown_domain", "mesh.app", "mesh"),
        application("application_exists", "west.app"),
        login("not_your_domain", "east", "west.app", "west"),
        login("unknown_principal", "west", "west.other", "west"),
        login("unknown_principal", "west", "west.app", "east"),
    ]


def _catalog() -> list[Refusal]:
    def publish(code: str, sender: str = "east", **changes: Any) -> Refusal:
        fresh = {"product": "east.orders", "topic": "east.orders", **changes}
        return Refusal(code, sender, intents.ProductPublished, story.product(**fresh))

    def update(code: str, sender: str = "east", **changes: Any) -> Refusal:
        fields = {"product": story.PRODUCT, **changes}
        return Refusal(code, sender, intents.ProductUpdated, fields)

    described: list[tuple[str, dict[str, Any]]] = [
        ("missing_text", {"description": " "}),
        ("text_too_long", {"description": "d" * 4001}),
        ("missing_text", {"owner": ""}),
        ("invalid_quality", {"quality": Quality.UNKNOWN}),
        ("invalid_sla", {"sla": 0}),
        ("invalid_sla", {"sla": 4}),
        ("invalid_tags", {"tags": ["Upper"]}),
        ("invalid_tags", {"tags": [""]}),
        ("invalid_tags", {"tags": ["t" * 64]}),
        ("invalid_tags", {"tags": ["t"] * 51}),
        ("invalid_version", {"version": "1.0"}),
        ("invalid_version", {"version": "1.0.0-rc"}),
        ("invalid_version", {"version": "\u0661.\u0660.\u0660"}),
    ]
    return [
        *(publish(code, **changes) for code, changes in described),
        *(update(code, **changes) for code, changes in described),
        publish("not_your_domain", "west"),
        publish("not_your_domain", "mesh"),
        publish("unknown_domain", "mesh", product="mesh.orders"),
        publish("invalid_name", product="orders"),
        publish("invalid_name", product="east.Orders"),
        publish("invalid_name", product="east.a.b"),
        publish("invalid_name", topic=""),
        publish("invalid_name", topic="east.a b"),
        *(
            publish("internal_topic", topic=topic)
            for topic in ("mesh.governance", "_schemas", "__consumer_offsets", "connect-status")
        ),
        publish("foreign_topic", topic="west.orders"),
        publish("foreign_topic", topic="orders"),
        publish("foreign_topic", topic="eastern.orders"),
        publish("foreign_topic", topic="east."),
        publish("not_acknowledged", acknowledged=False),
        publish("product_exists", product=story.PRODUCT),
        publish("topic_taken", topic="east.users"),
        update("invalid_name", product="users"),
        update("not_your_domain", "west"),
        update("unknown_product", product="east.orders"),
    ]


def _access() -> list[Refusal]:
    def ask(code: str, sender: str = "west", **changes: Any) -> Refusal:
        fields = {"product": "east.more", "application": f"{sender}.app", "reason": "r"}
        return Refusal(code, sender, intents.AccessRequested, {**fields, **changes})

    def answer(code: str, kind: type[Event], sender: str, asked: str, **changes: Any) -> Refusal:
        fields = {"product": story.PRODUCT, "request": asked, "reason": "r", **changes}
        return Refusal(code, sender, kind, fields)

    grant, deny, revoke = intents.AccessGranted, intents.AccessDenied, intents.AccessRevoked
    return [
        ask("not_your_domain", application="north.app"),
        ask("missing_text", reason=""),
        ask("unknown_application", application="west.nobody"),
        ask("unknown_product", product="east.nothing"),
        ask("own_product", "east"),
        ask("request_open", product=story.PRODUCT),
        ask("request_open", product=story.PRODUCT, application="west.two"),
        *(answer("unknown_request", kind, "east", "nobody") for kind in (grant, deny, revoke)),
        *(
            answer("unknown_request", kind, "east", ASKED, product="east.more")
            for kind in (grant, deny, revoke)
        ),
        *(answer("own_request", kind, "west", ASKED) for kind in (grant, deny)),
        *(answer("not_your_domain", kind, "north", ASKED) for kind in (grant, deny)),
        *(answer("not_your_domain", kind, "mesh", ASKED) for kind in (grant, deny)),
        *(answer("not_requested", kind, "east", DENIED) for kind in (grant, deny)),
        *(answer("not_requested", kind, "east", GRANTED) for kind in (grant, deny)),
        answer("invalid_on_revoke", grant, "east", ASKED, on_revoke=intents.OnRevoke.UNKNOWN),
        answer("invalid_engine", grant, "east", ASKED, engine=intents.Engine.UNKNOWN),
        answer("missing_text", deny, "east", ASKED, reason=" "),
        answer("not_your_domain", revoke, "north", GRANTED),
        answer("wrong_role", revoke, "controller", GRANTED),
        answer("missing_text", revoke, "east", GRANTED, reason=""),
        answer("not_granted", revoke, "east", ASKED),
        answer("not_granted", revoke, "north", DENIED),
    ]


def _links() -> list[Refusal]:
    def link(code: str, kind: type[Event], sender: str, **changes: Any) -> Refusal:
        fields = {"product": story.PRODUCT, "cluster": "west", **changes}
        return Refusal(code, sender, kind, fields)

    on_links = (intents.LinkPaused, intents.LinkResumed, intents.LinkDeleted)
    return [
        *(link("not_your_domain", kind, "north") for kind in (*on_links, intents.LinkCreated)),
        *(link("wrong_role", kind, "controller") for kind in (*on_links, intents.LinkCreated)),
        *(link("unknown_link", kind, "east", cluster="east") for kind in on_links),
        link("link_exists", intents.LinkCreated, "east"),
        link("no_grant", intents.LinkCreated, "east", cluster="east"),
        link("not_paused", intents.LinkResumed, "west"),
        link("still_granted", intents.LinkDeleted, "governor"),
    ]


def _statements() -> list[Refusal]:
    def add(code: str, sender: str = "east", **changes: Any) -> Refusal:
        fresh = {"statement": "east.other", "destination": "east.other", **changes}
        return Refusal(code, sender, statements.StatementAdded, story.statement(**fresh))

    def update(code: str, sender: str = "east", **changes: Any) -> Refusal:
        fields = {"statement": story.STATEMENT, "sql": "SELECT 1", "stream": "east.users"}
        return Refusal(code, sender, statements.StatementUpdated, {**fields, **changes})

    def direct(code: str, kind: type[Event], sender: str = "east", **changes: Any) -> Refusal:
        return Refusal(code, sender, kind, {"statement": story.STATEMENT, **changes})

    directions = (
        statements.StatementStopped,
        statements.StatementStarted,
        statements.StatementDeleted,
    )
    return [
        add("not_your_domain", "west"),
        add("unknown_domain", "mesh", statement="mesh.other"),
        *(add("invalid_name", statement=name) for name in ("east.O", "x.", ".x", "../x")),
        add("text_too_long", description="d" * 4001),
        add("statement_exists", statement=story.STATEMENT),
        add("invalid_begin", begin=statements.Begin.UNKNOWN),
        add("foreign_topic", destination="west.other"),
        add("invalid_name", destination="east.a b"),
        add("invalid_name", destination="east.other.dead"),
        add("destination_written", destination="east.copied"),
        add("missing_text", sql=" "),
        add("text_too_long", sql="s" * 20_001),
        add("too_many_tables", tables=["east.users"] * 17),
        add("invalid_name", stream=""),
        add("invalid_name", tables=["east.a b"]),
        add("invalid_name", names={"a b": "east.users"}),
        add("too_many_names", names={"x": "east.elsewhere"}),
        add("too_many_names", names={f"x{number}": "east.users" for number in range(41)}),
        # Kafka takes . and _ for the same
        add("destination_written", destination="east.copied_dead"),
        add("statement_cycle", stream="east.other.dead"),
        add("statement_cycle", tables=["east.other.dead"]),
        add("unknown_application", application="east.nobody"),
        add("unknown_application", application="west.app"),
        add("source_not_granted", stream="west.other"),
        add("source_not_granted", tables=["mesh.governance"]),
        add(
            "source_not_granted",
            "west",
            statement="west.other",
            destination="west.other",
            application="west.two",
        ),
        add("source_not_granted", "west", statement="west.other", destination="west.other"),
        add("statement_cycle", destination="east.users"),
        add("statement_cycle", stream="east.copied", destination="east.users"),
        update("not_your_domain", "mesh"),
        update("unknown_statement", statement="east.other"),
        update("stream_differs", stream="east.more"),
        update("statement_cycle", tables=["east.copied"]),
        *(direct("not_your_domain", kind, "west") for kind in directions),
        *(direct("unknown_statement", kind, statement="east.other") for kind in directions),
        *(direct("text_too_long", kind, reason="r" * 4001) for kind in (directions[0],)),
        direct("not_stopped", statements.StatementStarted),
    ]


BEATS, OF_BEATS = {"heartbeat.interval.ms": "10000"}, r"east\.__heartbeat\..*"
"""Heartbeats of a connector, and what matches their topic."""


def _connectors() -> list[Refusal]:
    def add(code: str, sender: str = "east", **changes: Any) -> Refusal:
        fresh = {"connector": "east.other", "more": {"table.include.list": "public.t"}, **changes}
        return Refusal(code, sender, connectors.ConnectorAdded, story.connector(**fresh))

    def add_with(code: str, **more: str) -> Refusal:
        named = {name.replace("_", "."): value for name, value in more.items()}
        return add(code, more={"table.include.list": "public.t", **named})

    def away(topic: str, regex: str = "east.[tu]") -> dict[str, str]:
        of = "transforms.away"
        kind = story.connector()["config"]["transforms.route.type"]
        routed = {f"{of}.type": kind, f"{of}.regex": regex, f"{of}.replacement": topic}
        return {"transforms": "route,away", **routed}

    def sink(code: str, **more: str) -> Refusal:
        config = {"connector.class": "some.Sink", "topics": "east.users", **more}
        return add(code, more={}, config=config)

    def update(code: str, sender: str = "east", **changes: Any) -> Refusal:
        return Refusal(code, sender, connectors.ConnectorUpdated, story.connector(**changes))

    def direct(code: str, kind: type[Event], sender: str = "east", **changes: Any) -> Refusal:
        return Refusal(code, sender, kind, {"connector": story.CONNECTOR, **changes})

    directions = (
        connectors.ConnectorStopped,
        connectors.ConnectorStarted,
        connectors.ConnectorDeleted,
    )
    foreign = "${dir:/logins:east}"
    return [
        add("not_your_domain", "west"),
        add("unknown_domain", "mesh", connector="mesh.other"),
        *(add("invalid_name", connector=name) for name in ("east.O", "x.", ".x", "../x")),
        add("text_too_long", description="d" * 4001),
        add("connector_exists", connector=story.CONNECTOR),
        add("invalid_connector", config={}),
        add("invalid_connector", config={"tasks.max": "1"}),
        add("config_too_large", more={f"s{number}": "" for number in range(201)}),
        add("config_too_large", more={f"s{number}": "v" * 4000 for number in range(17)}),
        add_with("invalid_connector", long="v" * 4001),
        *(add_with("setting_not_allowed", tasks_max=text) for text in ("none", "0", "65")),
        add_with("setting_not_allowed", database_socketFactory="org.example.Elsewhere"),
        add_with("setting_not_allowed", max_queue_size="100000000"),
        add_with("foreign_slot", slot_name="sdm_west_shop"),
        add_with("foreign_slot", publication_name="sdm_west_shop"),
        # the one before has it as somebody else's
        *(
            Refusal("foreign_slot", "east", kind, story.shared(name, "filtered"))
            for kind, name in (
                (connectors.ConnectorUpdated, "east.shares"),
                (connectors.ConnectorAdded, "east.shared"),
            )
        ),
        add("topic_shared", more={"table.include.list": "a.t,b.t"}),
        add("topic_shared", more={"table.include.list": "a.x y,a.x_y"}),
        add("topic_shared", more={"table.include.list": "a.t,a.u", **away("east.x")}),
        add("setting_not_allowed", more={"transforms.route.regex": "(a|a)" * 40 + "b"}),
        add("foreign_topic", more={"table.include.list": "a.t", **away("west.x")}),
        add("topic_filled", more={"table.include.list": "a.t", **away("east.orders")}),
        *(
            add(code, more={"table.include.list": "a.t", **BEATS, **away(topic, OF_BEATS)})
            for code, topic in (
                ("foreign_topic", "west.x"),
                ("topic_filled", "east.orders"),
                ("topic_shared", "east.t"),
            )
        ),
        sink("invalid_connector", **{"topics.regex": "east.*"}),
        sink("topic_filled", **{connector_config.DEAD_LETTERS: "east.copied"}),
        sink("topic_filled", **{connector_config.DEAD_LETTERS: "east.copied.dead"}),
        sink("source_not_granted", topics="east.users,west.orders"),
        sink("invalid_name", topics="east.a b"),
        add_with("secret_in_config", database_password="hunter2"),
        add_with("secret_in_config", some_token="t0ken"),
        add_with("foreign_login", producer_override_sasl_mechanism="PLAIN"),
        add_with("foreign_login", consumer_override_bootstrap_servers="elsewhere:9092"),
        add_with("foreign_login", offsets_storage_topic="west.offsets"),
        add_with("invalid_connector", name="west.shop"),
        add_with("foreign_secret", transforms_insert_value=connectors.OWN_SECRET),
        add_with("foreign_secret", database_hostname=foreign),
        add_with("foreign_secret", database_hostname="${a${topic}:b:c}"),
        add("foreign_secret", more={"table.include.list": "public.t", foreign: "x"}),
        add(
            "foreign_secret",
            more={"table.include.list": "public.t", "connector.class": "some.Other"},
        ),
        add_with("foreign_topic", topic_prefix="west.shop"),
        add_with("foreign_topic", topic_prefix="eastern"),
        add_with("foreign_topic", topic_heartbeat_prefix="__debezium-heartbeat"),
        add_with("foreign_topic", topic="west.orders"),
        add_with("foreign_topic", errors_deadletterqueue_topic_name="orders.dead"),
        add_with("foreign_topic", transforms_route_replacement="west.$1"),
        add("topic_filled", more={}),
        add("unknown_application", application="east.nobody"),
        add("unknown_application", application="west.app"),
        add(
            "table_taken",
            "west",
            connector="west.shop",
            more={
                "topic.prefix": "west.shop",
                "transforms.route.regex": r"west\.shop\.[^.]+\.(.+)",
                "transforms.route.replacement": "west.$1",
            },
        ),
        update("not_your_domain", "west"),
        update("unknown_connector", connector="east.other"),
        update("connector_changed", since=1),
        update("connector_differs", more={"connector.class": "some.Other"}),
        update("connector_differs", more={"topics": "east.users"}),
        update("connector_differs", more={"table.include.list": "public.orders,public.users"}),
        update("secret_in_config", more={"database.password": "hunter2"}),
        *(direct("not_your_domain", kind, "west") for kind in directions),
        *(direct("unknown_connector", kind, connector="east.other") for kind in directions),
        *(direct("text_too_long", kind, reason="r" * 4001) for kind in (directions[0],)),
        direct("not_stopped", connectors.ConnectorStarted),
    ]


REFUSALS = [*_identity(), *_catalog(), *_access(), *_links(), *_statements(), *_connectors()]
