"""The steps of the story: publish, find, request, grant, link, read, join, revoke, audit."""

import time
from datetime import UTC, datetime
from typing import Any

from local_platform.endpoints import Endpoints
from self_service.demo.audit import tell_audit
from self_service.demo.client import Client
from self_service.demo.database import Database
from self_service.demo.enrichment import tell_enrichment
from self_service.demo.stage import Stage, items

PRODUCT, APPLICATION, LINK = "east.users", "west.analytics", "east.users@west"
CHANGES_S = 60
MADE = [("c", "Dan", "555-0104"), ("u", "Cleo", "555-0199"), ("d", "Ada", "555-0101")]
"""What is done to the table, with the row after it, or before it for a deletion."""


class Story:
    """East shares its users with west and takes them back."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.endpoints = Endpoints.load(stage.home)
        self.database = Database(self.endpoints)
        self.moments: dict[str, str] = {}

    def tell(self) -> None:
        """Tell all of it."""
        self.domains_join()
        self.east_captures_its_database()
        self.east_publishes()
        self.west_finds_it()
        client = self.west_is_refused()
        request = self.west_requests()
        self.east_grants(request, client)
        self.changes_arrive(client)
        self.west_cannot_write(client)
        tell_enrichment(self.stage, APPLICATION, client)
        self.east_revokes(request, client)
        tell_audit(self.stage, PRODUCT, request, self.moments)
        self.database.close()

    def domains_join(self) -> None:
        """The operator registers east and west."""
        stage = self.stage
        stage.chapter("Two domains join, each with a Kafka cluster of its own")
        for domain in ("east", "west"):
            stage.sdm(
                "domain", "register", domain, "--cluster", domain, "--owner", f"team-{domain}"
            )
        stage.sdm("application", "register", APPLICATION, "-d", "west")
        known = {found["domain"] for found in items(stage.sdm("domain", "list").data)}
        # with its own login, at its own cluster
        refused = [
            domain
            for domain in ("east", "west")
            if stage.sdm("topic", "list", "-d", domain, refused=True, quiet=True).code
        ]
        stage.check(
            "both domains are registered and can log in",
            {"east", "west"} <= known and not refused,
            f"registered: {sorted(known)}, refused: {refused}",
        )

    def east_captures_its_database(self) -> None:
        """Debezium brings the tables into topics with registered schemas."""
        stage = self.stage
        stage.chapter("East captures its Postgres tables into topics")
        self.database.fill()
        stage.tell("tables users(userid, first_name, last_name, phone) and products are filled")
        stage.sdm(
            "connect",
            "connector",
            "add",
            "shop",
            "--type",
            "debezium-postgres",
            "--table",
            "users",
            "--table",
            "products",
            "--set",
            # the statement of step 10 looks rows up in it: they are not to expire
            "topic.creation.default.cleanup.policy=compact",
            "-d",
            "east",
        )
        _, took = stage.within(60, lambda: self._captured("east.users", 3))
        names = _of_rows(self._captured("east.users", 3), "first_name")
        stage.check(
            "the rows of users are on topic east.users, as Avro",
            names == ["Ada", "Ben", "Cleo"],
            str(names),
            took,
        )
        stage.within(60, lambda: self._captured("east.products", 2))
        names = _of_rows(self._captured("east.products", 2), "name")
        stage.check("those of products are on its own", names == ["chair", "lamp"], str(names))

    def _captured(self, topic: str, count: int) -> list[dict[str, Any]]:
        answer = self.stage.sdm(
            "topic",
            "consume",
            topic,
            "--from",
            "beginning",
            "--max",
            str(count),
            "--timeout",
            "5",
            "-d",
            "east",
            refused=True,
            quiet=True,
        )
        found = items(answer.data) if answer.code == 0 else []
        return found if len(found) >= count else []

    def east_publishes(self) -> None:
        """The topic becomes a product of the catalog."""
        stage = self.stage
        stage.chapter("East publishes the topic as a data product")
        self.moments["before the product"] = _now()
        stage.sdm(
            "product",
            "publish",
            PRODUCT,
            "--description",
            "Customers, every change",
            "--owner",
            "team-east",
            "--quality",
            "curated",
            "--sla",
            "2",
            "--tag",
            "customers",
            "--acknowledge",
            "-d",
            "east",
        )
        row = stage.sdm("product", "describe", PRODUCT, quiet=True).data
        stage.check("the catalog shows owner, quality, SLA and schema", _is_shown(row), str(row))

    def west_finds_it(self) -> None:
        """Search."""
        stage = self.stage
        stage.chapter("West finds it in the catalog")
        found = items(stage.sdm("catalog", "search", "customers").data)
        names = [row["product"] for row in found]
        stage.check("the search finds east.users", PRODUCT in names, str(names))

    def west_is_refused(self) -> Client:
        """Without a grant Kafka refuses; returns the client used from here on."""
        stage = self.stage
        stage.chapter("West's application tries to read: Kafka refuses")
        settings = stage.home / "analytics.properties"
        settings.unlink(missing_ok=True)
        stage.sdm("access", "credentials", APPLICATION, "--out", str(settings), "-d", "west")
        client = Client(settings, self.endpoints.registry_url, PRODUCT)
        _, error = client.read(20)
        stage.check(
            "the read is refused by Kafka", error == "TOPIC_AUTHORIZATION_FAILED", error or "read"
        )
        return client

    def west_requests(self) -> str:
        """A request with a reason; returns its id."""
        stage = self.stage
        stage.chapter("West requests access, and cannot approve its own request")
        stage.sdm(
            "access", "request", PRODUCT, APPLICATION, "--reason", "weekly report", "-d", "west"
        )
        request = str(items(stage.sdm("access", "list", quiet=True).data)[0]["request"])
        answer = stage.sdm("access", "grant", request, "-d", "west", refused=True)
        stage.check(
            "its own grant is refused (own_request)",
            answer.code != 0 and "own_request" in answer.error,
            answer.error,
        )
        self.moments["before the grant"] = _now()
        return request

    def east_grants(self, request: str, client: Client) -> None:
        """From the grant to the first local read."""
        stage = self.stage
        stage.chapter("East grants: rights on both clusters, a link, a copy")
        start = time.monotonic()
        stage.sdm(
            "access",
            "grant",
            request,
            "--reason",
            "agreed",
            "-d",
            "east",
            "--until",
            "active",
            "--timeout",
            "240",
        )
        changes, error = client.read(120, enough=3)
        took = time.monotonic() - start
        stage.check(
            "the same client with the same configuration now reads 3 rows in its own cluster",
            sorted(row["first_name"] for _, row in changes if row) == ["Ada", "Ben", "Cleo"],
            error or str(changes),
            took,
        )
        link = stage.sdm("link", "describe", LINK).data
        stage.check("the link east.users@west is ACTIVE", _is(link, state="ACTIVE"), str(link))
        why = stage.sdm("access", "explain", PRODUCT, APPLICATION).data
        stage.check("explain: entitled, enforced on the cluster, copied", _explained(why), str(why))
        self.moments["during the grant"] = _now()

    def changes_arrive(self, client: Client) -> None:
        """Changes in Postgres are seen in west."""
        stage = self.stage
        stage.chapter("A row is inserted, updated and deleted in Postgres")
        self.database.run("INSERT INTO users VALUES (4, 'Dan', 'Example', '555-0104')")
        self.database.run("UPDATE users SET phone = '555-0199' WHERE userid = 3")
        self.database.run("DELETE FROM users WHERE userid = 1")
        start = time.monotonic()
        changes, error = client.read(CHANGES_S, enough=6)
        took = time.monotonic() - start
        made = [
            (operation, row["first_name"], row["phone"]) for operation, row in changes[3:] if row
        ]
        stage.check(
            f"insert, update and delete arrive in west, in order, within {CHANGES_S} s",
            made == MADE and took < CHANGES_S,
            error or str(made),
            took,
        )

    def west_cannot_write(self, client: Client) -> None:
        """The copy is read-only."""
        error = client_error = client.write(b"forged")
        self.stage.check(
            "west cannot write to the copy", error == "TOPIC_AUTHORIZATION_FAILED", client_error
        )

    def east_revokes(self, request: str, client: Client) -> None:
        """From the revocation to the purged copy."""
        stage = self.stage
        stage.chapter("East revokes")
        start = time.monotonic()
        stage.sdm(
            "access",
            "revoke",
            request,
            "--reason",
            "project ended",
            "-d",
            "east",
            "--until",
            "applied",
        )
        _, error = client.read(20)
        took = time.monotonic() - start
        stage.check(
            "the next read is refused", error == "TOPIC_AUTHORIZATION_FAILED", error or "read", took
        )
        gone, took = stage.within(60, self._link_deleted)
        stage.check("the link is deleted and the copy purged", gone, "still there", took)
        left = stage.sdm("topic", "list", "--cluster", "west", "-d", "mesh", quiet=True).data
        names = [found["topic"] for found in items(left)]
        stage.check("no topic east.users is left in west", PRODUCT not in names, str(names))
        self.moments["after the revocation"] = _now()

    def _link_deleted(self) -> bool:
        link = self.stage.sdm("link", "describe", LINK, quiet=True).data
        return _is(link, state="DELETED", copy="PURGED")


def _now() -> str:
    """The moment between two steps, as the log will see it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is(shown: Any, **wanted: str) -> bool:
    """Whether what was shown has these values."""
    return isinstance(shown, dict) and wanted.items() <= shown.items()


def _of_rows(records: list[dict[str, Any]], column: str) -> list[str]:
    """A column of the rows behind changes, in their order."""
    return sorted(str(one["value"]["after"][column]) for one in records)


def _is_shown(row: Any) -> bool:
    promised = {"owner": "team-east", "quality": "STANDARD", "sla": 2}
    return bool(row) and bool(row.get("schema_subject")) and promised.items() <= row.items()


def _explained(why: Any) -> bool:
    return bool(why) and all(why.get(name) for name in ("entitled", "enforced", "copied"))
