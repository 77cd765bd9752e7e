"""A statement that joins a copy which its link is still filling, on real servers."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass

import fastavro
import pytest

from mesh_events.intents import LinkCreated, LinkDeleted, LinkPaused, LinkResumed
from mesh_events.rows import LinkState, StatementState
from mesh_events.statements import StatementAdded, StatementDeleted
from projections.links import Link
from tests.integration.statements.conftest import Stage
from tests.kafka_client import registrar
from tests.mesh_kit import Mesh

pytestmark = [pytest.mark.platform, pytest.mark.slow]

JOIN = "SELECT c.number, u.name FROM clicks c LEFT JOIN users u ON c.userid = u.userid"
MANY = 200_000
"""Rows of the table: copying them takes seconds, and the last one comes last."""


@dataclass
class Linked:
    """A table of one domain, and a stream of another one on a cluster with a copy of the table."""

    theirs: Stage
    ours: Stage
    product: str
    application: str

    @property
    def place(self) -> dict[str, str]:
        """What names the link."""
        return {"product": self.product, "cluster": self.ours.domain.cluster}

    def say(self, kind: type[LinkCreated | LinkPaused | LinkResumed | LinkDeleted]) -> None:
        """The owner of the table says something about the link."""
        self.theirs.kit.accepted(self.theirs.domain.say(kind, **self.place))

    def link(self, state: LinkState) -> Link:
        """The link, once it is in this state."""
        name = f"{self.product}@{self.ours.domain.cluster}"
        image = self.ours.kit.wait_for(
            lambda image: name in image.links and image.links[name].state is state,
            f"the link is {state}",
        )
        return image.links[name]

    def add(self) -> None:
        """Add the statement, which is to begin when it can."""
        self.ours.say(
            StatementAdded,
            sql=JOIN,
            stream=self.ours.clicks,
            tables=[self.theirs.users],
            names={"clicks": self.ours.clicks, "users": self.theirs.users},
            destination=self.ours.out,
            application=self.application,
        )

    def names(self) -> list[str | None]:
        """Whom the clicks that came out belong to."""
        found = registrar(self.ours.kit.endpoints).get_latest_version(f"{self.ours.out}-value")
        schema = fastavro.parse_schema(json.loads(found.schema.schema_str))
        return [
            fastavro.schemaless_reader(io.BytesIO(one.value[5:]), schema)["name"]
            for one in self.ours.landed(self.ours.out)
        ]


@pytest.fixture
def linked(kit: Mesh, request: pytest.FixtureRequest) -> Iterator[Linked]:
    """A table of so many rows, and one more, that is granted; its link is being made."""
    theirs = Stage(kit, kit.register_domain("owner"))
    ours = Stage(kit, kit.register_domain("far", "west"))
    product = f"{theirs.name}-users"
    kit.accepted(theirs.domain.publish(product, theirs.users))
    rows: int = request.param
    for begin in range(0, rows, 20_000):
        theirs.know(dict.fromkeys(range(begin, min(rows, begin + 20_000)), "somebody"))
    theirs.know({rows: "the last one"})
    application = ours.domain.application().name
    asked = ours.domain.request(product, application)
    theirs.domain.grant(product, asked, active=False)
    yield Linked(theirs, ours, product, application)
    known = kit.image().statements.get(ours.statement)
    if known is not None and known.stands:
        ours.say(StatementDeleted)
        ours.wait_for(lambda one: one.state is StatementState.DELETED, "it is deleted")
    theirs.domain.revoke(product, asked)


@pytest.mark.parametrize("linked", [10], indirect=True)
def test_a_statement_waits_for_a_link_that_was_paused_before_it_filled_the_table(
    linked: Linked,
) -> None:
    linked.link(LinkState.ACTIVE)
    linked.add()
    linked.ours.until_active()
    linked.say(LinkDeleted)
    linked.link(LinkState.DELETED)
    # a start takes longer than the two decisions: what it does is of no account
    linked.say(LinkCreated)
    linked.say(LinkPaused)
    linked.link(LinkState.PAUSED)
    linked.ours.click(range(4), [10])
    waits = linked.ours.wait_for(
        lambda one: one.failure_code == "table_filling" and "PAUSED" in (one.failure or ""),
        "it says that the link is paused",
    )
    assert f"{linked.product}@west" in (waits.failure or "")
    assert not waits.is_active
    linked.say(LinkResumed)
    linked.ours.until_active()
    linked.ours.until_landed(4)
    assert linked.names() == ["the last one"] * 4


@pytest.mark.parametrize("linked", [MANY], indirect=True)
def test_a_statement_waits_for_a_table_whose_link_is_removed_and_created_again(
    linked: Linked,
) -> None:
    linked.link(LinkState.ACTIVE)
    linked.add()
    linked.ours.click(range(4), [MANY])
    first = linked.ours.until_active().incarnation
    linked.ours.until_landed(4)
    linked.say(LinkDeleted)
    linked.link(LinkState.DELETED)
    linked.say(LinkCreated)
    linked.ours.click(range(4, 50), [MANY])
    again = linked.ours.wait_for(
        lambda one: one.is_active and one.incarnation > first, "it runs again"
    )
    assert again.failure_code is None
    linked.ours.until_landed(50)
    assert linked.names() == ["the last one"] * 50
