"""A governance log of any length: a foundation, then one access story after another."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from mesh_events import avro
from mesh_events.codec import Wire, encode
from mesh_events.decisions import GovernorStarted, IntentAccepted, MeshFounded, SchemaIntroduced
from mesh_events.facts import AclApplied, AclRemoved, CheckPassed
from mesh_events.intents import (
    AccessGranted,
    AccessRequested,
    AccessRevoked,
    ApplicationRegistered,
    ClusterRegistered,
    DomainRegistered,
    Intent,
    ProductPublished,
    Quality,
)
from mesh_events.meta import Event, Meta, derived_id, milliseconds
from mesh_events.signing import SigningKey
from mesh_events.vocabulary import EVENTS
from processors.governor.decision import version
from projections.catalog import SCHEMA_REGISTERED
from projections.rules.access import TARGET_FREE
from projections.rules.catalog import TOPIC_EXISTS
from projections.rules.identity import CLUSTER_REACHABLE

EVENTS_PER_STORY = 9
"""Request, grant and revocation with their decisions, a check, and two facts about rights."""
PRODUCTS = 1000
STEP = timedelta(milliseconds=30)
"""Between two records: a log of a million lasts eight hours, in which ids are forgotten as they
are on a mesh; in no hour has a domain more ids than it may have."""


class Workload:
    """Writes the log in order; offsets are counted, so the topic must be empty at the start.

    The time of its clocks goes on by `STEP` with each record and ends now: `time_ms` is when the
    record that was yielded last is appended.
    """

    def __init__(self) -> None:
        self.offset = -1
        self._epoch = 0
        self._keys = {name: SigningKey.generate() for name in ("root", "op", "gov", "controller")}
        self._domains = {name: SigningKey.generate() for name in ("east", "west")}
        self._ids = {name: 100 + number for number, name in enumerate(EVENTS)}
        self._now = datetime.now(UTC).replace(microsecond=0)

    @property
    def time_ms(self) -> int:
        """When the record that was yielded last is appended."""
        return milliseconds(self._now)

    def key(self, role: str) -> SigningKey:
        """The key of `root`, `op`, `gov` or `controller`."""
        return self._keys[role]

    def records(self, count: int) -> Iterator[Wire]:
        """At least `count` records."""
        self._now -= count * STEP
        yield from self._foundation()
        story = 0
        while self.offset + 1 < count:
            yield from self._story(story)
            story += 1

    def _foundation(self) -> Iterator[Wire]:
        first = SchemaIntroduced.type_name()
        for name in (first, *(other for other in EVENTS if other != first)):
            text = avro.text_of(name)
            yield self._wire(
                SchemaIntroduced(
                    meta=self._meta("mesh"),
                    schema_id=self._ids[name],
                    name=avro.subject(name),
                    fingerprint=avro.fingerprint(text),
                    schema_text=text,
                ),
                "root",
            )
        yield self._wire(
            MeshFounded(
                meta=self._meta("mesh"),
                mesh="benchmark",
                governance_cluster="east",
                operator_key=self._keys["op"].public,
                governor_key=self._keys["gov"].public,
                controller_key=self._keys["controller"].public,
            ),
            "root",
        )
        meta = self._meta("mesh")
        # long logs have more requests than a domain may have by default
        started = GovernorStarted(meta=meta, version=version(), requests_per_domain=1_000_000)
        self._last = started.meta.id
        yield self._wire(started, "gov")
        self._epoch = self.offset
        yield from self._accepted(
            ClusterRegistered(
                meta=self._meta("mesh"),
                cluster="east",
                bootstrap_servers="127.0.0.1:1",
                admin_user="admin",
                admin_password="env:NONE",
            ),
            "op",
            CLUSTER_REACHABLE,
        )
        for name, key in self._domains.items():
            yield from self._accepted(
                DomainRegistered(
                    meta=self._meta("mesh"),
                    domain=name,
                    owner="benchmark",
                    cluster="east",
                    public_key=key.public,
                    proof=key.prove(self._keys["root"].public, name),
                ),
                "op",
            )
        for number in range(PRODUCTS):
            yield from self._accepted(
                ProductPublished(
                    meta=self._meta("east"),
                    product=f"east.p{number}",
                    topic=f"east.p{number}",
                    description="one of many",
                    owner="benchmark",
                    quality=Quality.RAW,
                    sla=3,
                    acknowledged=True,
                ),
                "east",
                TOPIC_EXISTS,
                SCHEMA_REGISTERED,
            )
            yield from self._accepted(
                ApplicationRegistered(meta=self._meta("west"), application=f"west.a{number}"),
                "west",
            )

    def _story(self, number: int) -> Iterator[Wire]:
        product, application = f"east.p{number % PRODUCTS}", f"west.a{number % PRODUCTS}"
        asked = AccessRequested(
            meta=self._meta("west"), product=product, application=application, reason="figures"
        )
        request = asked.meta.id
        yield from self._accepted(asked, "west")
        granted = AccessGranted(meta=self._meta("east"), product=product, request=request)
        yield from self._accepted(granted, "east", TARGET_FREE)
        yield self._rights(AclApplied, request)
        yield from self._accepted(
            AccessRevoked(
                meta=self._meta("east"), product=product, request=request, reason="figures"
            ),
            "east",
        )
        yield self._rights(AclRemoved, request)

    def _rights(self, fact: type[AclApplied | AclRemoved], request: str) -> Wire:
        return self._wire(
            fact(
                meta=self._meta("mesh"),
                subject=request,
                cluster="east",
                generation=self.offset,
                bindings=["west.app read topic east.p"],
            ),
            "controller",
        )

    def _accepted(self, intent: Intent, key: str, *checks: str) -> Iterator[Wire]:
        """An intent, the checks that its decision waits for, and the decision."""
        yield self._wire(intent, key)
        offset = self.offset
        for check in checks:
            passed = CheckPassed(meta=self._meta("mesh"), offset=offset, check=check)
            yield self._wire(passed, "controller")
        yield self._decision(intent, offset)

    def _decision(self, intent: Intent, offset: int) -> Wire:
        event = IntentAccepted(
            meta=self._meta("mesh"),
            offset=offset,
            epoch=self._epoch,
            basis=self.offset,
            clock=self._now,
            follows=self._last,
            intent=intent.meta.id,
        )
        self._last = event.meta.id
        return self._wire(event, "gov")

    def _wire(self, event: Event, key: str) -> Wire:
        self.offset += 1
        self._now += STEP
        signer = self._keys.get(key) or self._domains[key]
        return encode(event, self._ids[event.type_name()], signer, self._keys["root"].public)

    def _meta(self, domain: str) -> Meta:
        identity = derived_id("benchmark", domain, self.offset)
        return Meta(
            id=identity,
            time=self._now,
            actor="benchmark",
            domain=domain,
            correlation=identity,
            producer="benchmark/1",
        )
