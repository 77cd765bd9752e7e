"""In place of the governor: holds the image, takes the controller's facts, decides."""

import threading
from collections.abc import Callable
from typing import TypeVar

from immutables import Map

from mesh_events.facts import Fact, LinkFact
from mesh_events.intents import Engine, LinkCreated, OnRevoke, Quality
from mesh_events.meta import Meta, derived_id, now
from processors.controllers.controller import NotLeaderError
from projections import links
from projections.access import Access, State, put
from projections.catalog import Product
from projections.identity import Cluster, Identity
from projections.image import Image
from projections.links import Desired, Link, link_id

SomeFact = TypeVar("SomeFact", bound=Fact)


def meta(identity: str) -> Meta:
    return Meta(id=identity, time=now(), actor="tester", domain="mesh", correlation="none")


class ControllerHarness:
    """A Leadership whose log is a list, over one link from `source` to `target`.

    Lanes report at the same time: like the log it takes one record after the other.
    """

    epoch = 0

    def __init__(
        self, clusters: list[Cluster], product: str, topic: str, engine: Engine = Engine.SPARK
    ) -> None:
        source, target = clusters
        self._turn = threading.RLock()
        self.facts: list[Fact] = []
        self.ended = False
        self.on_check: Callable[[], None] = lambda: None
        self.name = link_id(product, target.name)
        self._product, self._target = product, target.name
        self.image = Image(
            identity=Identity(clusters=Map({found.name: found for found in clusters})),
            catalog=Map({product: _product(product, source.name, topic)}),
        )
        self.create(engine)

    @property
    def last_report(self) -> int:
        return self.image.offset

    @property
    def link(self) -> Link:
        return self.image.links[self.name]

    def create(self, engine: Engine = Engine.SPARK) -> None:
        place = {"product": self._product, "cluster": self._target}
        event = LinkCreated(meta=meta("create"), **place, engine=engine)

        def create(image: Image, at: int) -> Image:
            product = image.catalog[self._product]
            return image._replace(links=links.created(image.links, event, product, at, at * 1000))

        self.change(create)

    def change(self, act: Callable[[Image, int], Image]) -> None:
        """Something is said: `act` makes the next image of the present one and its own offset."""
        with self._turn:
            at = self.image.offset + 1
            self.image = act(self.image, at)._replace(offset=at)

    def elect(self) -> None:
        """A governor starts: what was said before may have been carried out by another worker."""
        self.change(lambda image, at: image._replace(epoch=at))

    def grant(self, application: str) -> None:
        """An application reads the copy, and its right is on the log; it is to be withdrawn."""

        def grant(image: Image, at: int) -> Image:
            link = image.links[self.name]
            access = Access(
                request=f"request-{at}",
                offset=at,
                product=link.product,
                application=application,
                cluster=link.cluster,
                topic=link.topic,
                link=link.id,
                reason="",
                requested_by="tester",
                requested_at=at * 1000,
                state=State.REVOKING,
                generation=at,
                changed=at,
                granted_generation=at,
                enforced=((at, None),),
            )
            return image._replace(access=put(image.access, access))

        self.change(grant)

    def pause(self) -> None:
        self._direct(Desired.PAUSED)

    def resume(self, engine: Engine | None = None) -> None:
        if engine is not None:
            with self._turn:
                after = links.taken_over(self.image.links, self.name, engine)
                self.image = self.image._replace(links=after)
        self._direct(Desired.RUNNING)

    def remove(self, on_revoke: OnRevoke = OnRevoke.PURGE) -> None:
        self._direct(Desired.DELETED, on_revoke)

    def said(self, kind: type[SomeFact]) -> list[SomeFact]:
        return [fact for fact in self.facts if isinstance(fact, kind)]

    def check(self) -> None:
        self.on_check()
        if self.ended:
            raise NotLeaderError("another governor has started")

    def report(self, fact: Fact) -> None:
        self.check()
        fact = fact.shortened()

        def take(image: Image, at: int) -> Image:
            self.facts.append(fact)
            if not isinstance(fact, LinkFact):
                return image
            return image._replace(links=links.reported(image.links, fact, at, at * 1000))

        self.change(take)

    def meta(self, cause: str, step: str, generation: int, *, correlation: str) -> Meta:
        return Meta(
            id=derived_id(cause, step, generation),
            time=now(),
            actor="mesh.controller",
            domain="mesh",
            correlation=correlation,
            causation=cause,
        )

    def _direct(self, desired: Desired, on_revoke: OnRevoke = OnRevoke.PURGE) -> None:
        self.change(
            lambda image, at: image._replace(
                links=links.redirected(image.links, self.name, desired, at, at * 1000, on_revoke)
            )
        )


def _product(product: str, cluster: str, topic: str) -> Product:
    return Product(
        id=product,
        cluster=cluster,
        topic=topic,
        description="",
        owner="team-east",
        quality=Quality.STANDARD,
        sla=2,
        tags=(),
        version="1.0.0",
        schema_subject="",
        schema_id=0,
        generation=0,
        published_at=0,
        updated_at=0,
        changed=0,
    )
