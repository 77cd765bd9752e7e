"""What must hold after every act. Nothing here is worked out by the fold that is tested.

The rules (`decide`) are asked again, on the states of a reference fold: of two governors that both
believe to leadership, only one may be right.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from mesh_events.codec import decode
from mesh_events.meta import MESH_DOMAIN, milliseconds
from mesh_events.record import Entry, Fault, FaultCode, Record
from processors.clusters.rights import Binding, Operation
from processors.controllers.rights.wishes import desired
from projections.access import State
from projections.deciding.decide import decide
from projections.deciding.verdict import Accepted, Quarantined, Rejected, Verdict
from projections.fold import apply
from projections.image import TOLERANCE_MS, Image
from projections.rows import row
from self_service.cli.verification.rejudging import Judgements
from spark_streams.provenance import HEADER
from tests.memory_log import open_offsets
from tests.oracle.oracle import DECISIONS, Plain, tell
from tests.simulation.world import PRODUCTS, World

HOUR = 3_600_000
NAMES = {Accepted: "IntentAccepted", Rejected: "IntentRejected", Quarantined: "IntentQuarantined"}


class Invariants:
    """The log as an auditor sees it, kept up to date after each act."""

    def __init__(self, world: World, entries: dict[int, Entry]) -> None:
        self.world, self.entries = world, entries
        self.images: dict[int, Image] = {world.known.offset: world.known}
        self.plain = [_FIRST[entries[at].offset][1] for at in range(world.known.offset + 1)]
        self.last = world.known
        self.epoch = self.last.epoch
        self.waiting: set[int] = set(open_offsets(self.last))
        # offset -> code, of what nobody needs to judge
        self.unusable: dict[int, str] = {}
        # (signer, id) of every intent that had its one turn to be judged
        self.arrived = set(filter(None, map(_intent, entries.values())))
        self.followed = self.last.last_decision
        self.judgements = Judgements()
        self.judgements.take(self.last)
        self.accepted: Counter[tuple[str | None, str]] = Counter()
        self.granted: set[tuple[str, str]] = set()
        # domain -> until when nothing counts that it says, ms
        self.frozen: dict[str, int] = {}
        self.cut_off: set[str] = set()
        self.revoked: set[str] = set()
        # offsets of records that were undecided while broker and workers agreed on a wrong time
        self.deceived: set[int] = set()
        # intents made before this time (ms) may be older than what is remembered
        self.forgotten = 0
        self.rows_seen: Counter[str] = Counter()
        self.told: Plain = {}

    def check(self) -> None:
        """Everything that must hold now."""
        new = self.world.log.records[len(self.plain) :]
        for record in new:
            self._add(record.offset)
        self.world.epoch = self.epoch
        if self.world.clock.deceived:
            self.deceived |= self.waiting
        if new:
            self.compare()
        self._check_workers()
        self._check_rows()
        self._check_rights()
        self._check_copies()

    def _add(self, offset: int) -> None:
        entry = self.entries[offset]
        plain = _plain(entry)
        self.plain.append(plain)
        before = self.last
        if self._counts(plain, entry):
            self._doubt(entry, offset)
        self.last = self.images[offset] = apply(before, understood(entry, before))
        if offset in self.waiting:
            self._check_arrival(entry, before.clock)
        self.judgements.take(self.last)

    def _check_arrival(self, entry: Entry, clock: int) -> None:
        """Of all records with one signer and id the first is judged, and no copy ever.

        An intent that is no copy may be set aside only where it is an hour old by the mesh's clock,
        `clock` before it in ms. Ids are forgotten while the broker is not behind that clock.
        """
        offset, who = entry.offset, _intent(entry)
        usable = offset in self.last.intents.undecided
        if offset not in self.unusable and who is not None:
            event: Any = entry.event
            made = milliseconds(event.meta.time)
            too_old = self.last.clock - made > HOUR
            if who in self.arrived or (too_old and not usable):
                self.unusable[offset] = COPY
            in_time = abs(made - self.world.log.moments.get(offset, made)) <= HOUR
            if entry.time >= clock - TOLERANCE_MS:
                self.forgotten = max(self.forgotten, clock - HOUR)
            due = usable or who in self.arrived or not in_time or made < self.forgotten
            assert due, f"the intent at {offset} was emitted in time and set aside"
            self.arrived.add(who)
        assert usable is (offset not in self.unusable), (
            f"the record at {offset} waits for a decision: {usable}, "
            f"but is {self.unusable.get(offset, 'usable')}"
        )

    def _counts(self, plain: Plain, entry: Entry) -> bool:
        """Whether the record is a decision that counts; keeps epoch and what waits."""
        kind, fields, offset = plain["type"], plain["fields"], plain["offset"]
        governor = self.last.identity.keys.get(entry.signer or "")
        role = governor.role if governor is not None and governor.revoked is None else None
        authentic = role == "governor"
        if authentic and kind == "GovernorStarted":
            is_next = fields["previous_epoch"] in (None, self.epoch)
            if not is_next or fields["meta"]["id"] in self.last.starts:
                return False
            self.epoch, self.followed = offset, fields["meta"]["id"]
        elif authentic and kind in DECISIONS:
            of_epoch = fields["epoch"] == self.epoch <= fields["basis"] < offset
            chained = of_epoch and fields["follows"] == self.followed
            if kind == "RecordsSetAside":
                return chained and fields["last"] <= fields["basis"]
            return chained and fields["offset"] in self.waiting
        elif kind is None or kind in _INTENTS or not _may(kind, role):
            self.waiting.add(offset)
            code = _fault(entry, kind, governor)
            if code is not None:
                self.unusable[offset] = code
        return False

    def _doubt(self, decision: Entry, offset: int) -> None:
        """A decision that counts must follow from the state that it says it was made on."""
        event: Any = decision.event
        wanted = type(event).__name__
        code = getattr(event, "code", "")
        state = self.judgements.state(event)
        assert state is not None, f"the basis of the decision at {offset} is not its own"
        if wanted == "RecordsSetAside" or event.offset in self.unusable:
            self._doubt_unusable(event, offset)
            self.judgements.counted(event, decision.signer or "")
            self.followed = event.meta.id
            return
        decided = self.entries[event.offset]
        self.waiting.discard(event.offset)
        self._check_order(decided)
        verdict = decide(
            state,
            state.intents.undecided[event.offset],
            milliseconds(event.clock),
            waited=getattr(event, "waited", 0),
            worker_skew=event.worker_skew,
        )
        assert _same(verdict, wanted, code), (
            f"the decision at {offset} on {event.offset} ({wanted} {code}) does not follow "
            f"from the state at {event.basis}: {verdict}"
        )
        self._check_time(event, offset)
        self.judgements.counted(event, decision.signer or "")
        self.followed = event.meta.id
        if wanted == "IntentAccepted":
            said: Any = decided.event
            self._check_sender(decided)
            self._hear(said)
            self.accepted[decided.signer, said.meta.id] += 1
            assert self.accepted[decided.signer, said.meta.id] == 1, (
                f"the intent {said.meta.id} took effect twice"
            )
            if type(said).__name__ == "AccessGranted":
                request = next(one for one in self.world.said if one.meta.id == said.request)
                self.granted.add((request.application, request.product))

    def _check_order(self, decided: Entry) -> None:
        """What a domain says about one thing is decided in the log's order; operators overtake."""
        if (order := self._order(decided)) is None:
            return
        earlier = [
            at
            for at in self.waiting - set(self.unusable)
            if at < decided.offset and self._order(self.entries[at]) == order
        ]
        assert not earlier, f"{decided.offset} is decided, and {earlier} on {order} is not"

    def _order(self, entry: Entry) -> tuple[str, bytes | None, str] | None:
        if _intent(entry) is None:
            return None
        key = self.last.identity.keys.get(entry.signer or "")
        if key is None or key.role == "operator":
            return None
        about = self.world.log.records[entry.offset].key
        return key.domain, about, getattr(entry.event, "request", "")

    def _check_time(self, decision: Any, offset: int) -> None:
        """No single clock that is wrong moves the mesh's, or refuses what is said in time."""
        log, clock = self.world.log, self.world.clock
        ahead = milliseconds(decision.clock) - log.moments[offset]
        assert ahead <= clock.agreed + TOLERANCE_MS, (
            f"the decision at {offset} is {ahead} ms ahead of the time, broker and workers agreed "
            f"on {clock.agreed} ms at most"
        )
        told, at = self.entries[decision.offset].event, decision.offset
        if told is None or at in self.deceived or at not in log.moments:
            return
        code, made = getattr(decision, "code", ""), milliseconds(told.meta.time)
        in_time = code not in ("stale_intent", "clock_ahead") or abs(made - log.moments[at]) > HOUR
        assert in_time, f"{told.meta.id} was said in time and refused with {code}"

    def _doubt_unusable(self, event: Any, offset: int) -> None:
        """All records that a decision sets aside are unusable, and counted by their codes."""
        about = {one for one in self.waiting if event.decides(one)}
        usable = sorted(about - set(self.unusable))
        assert not usable, f"the decision at {offset} sets the usable record at {usable} aside"
        told = _merged(getattr(event, "counts", None) or {event.code: 1})
        found = Counter(self.unusable[one] for one in about)
        assert found == told, f"the decision at {offset} counts {told}, there stand {found}"
        self.waiting -= about

    def _check_sender(self, said: Entry) -> None:
        """Nothing was accepted of who is to be silent."""
        event: Any = said.event
        assert said.signer not in self.revoked, f"{event.meta.id} is signed with a revoked key"
        domain = event.meta.domain
        if domain == MESH_DOMAIN:
            return
        assert domain not in self.cut_off, f"{domain} is cut off, and {event.meta.id} counted"
        until = max(self.frozen.get(name, 0) for name in (domain, MESH_DOMAIN))
        ahead = self.world.clock.agreed + TOLERANCE_MS
        moment = self.world.log.moments.get(said.offset, said.time)
        assert moment + ahead >= until, f"{domain} is frozen, and {event.meta.id} counted"

    def _hear(self, said: Any) -> None:
        """Who is to be silent from this accepted intent on."""
        match type(said).__name__:
            case "DomainFrozen":
                self.frozen[said.domain] = round(said.until.timestamp() * 1000)
            case "DomainThawed":
                self.frozen.pop(said.domain, None)
            case "DomainQuarantined":
                self.cut_off.add(said.domain)
            case "DomainReleased":
                self.cut_off.discard(said.domain)
            case "KeyRevoked":
                self.revoked.add(said.public_key)

    def compare(self) -> None:
        """The reference fold says what the oracle says."""
        told, image = tell(self.plain), self.last
        self.told = told
        found = {
            "epoch": image.epoch,
            "undecided": open_offsets(image),
            "accesses": {
                name: (one.state.value, one.generation)
                for name, one in image.access.requests.items()
            },
            "links": {
                name: (
                    one.desired.value,
                    one.state.value,
                    one.generation,
                    one.copy.value,
                    one.incarnation,
                    dict(one.positions),
                )
                for name, one in image.links.items()
            },
        }
        wanted = {
            "epoch": told["epoch"],
            "undecided": told["undecided"],
            "accesses": {
                name: (one["state"], one["generation"]) for name, one in told["accesses"].items()
            },
            "links": {
                name: tuple(one[part] for part in _LINK) for name, one in told["links"].items()
            },
        }
        assert found == wanted, f"fold and oracle differ: {found} is not {wanted}"

    def _check_workers(self) -> None:
        """What a worker holds is the state at its offset."""
        for name, worker in self.world.workers.items():
            image = worker.governor.image
            assert image == self.images[image.offset], f"worker {name} holds another image"

    def _check_rows(self) -> None:
        """Each row that was written is what the log said at the row's own offset."""
        known = self.world.known.offset
        for topic, rows in self.world.rows.topics.items():
            for key, written in rows[self.rows_seen[topic] :]:
                at = self.last.offset if written is None else max(written.as_of_offset, known)
                told = row(self.images[at], (topic, key))
                assert written == told, f"the row {key} is {written}, at {at} the log said {told}"
            self.rows_seen[topic] = len(rows)

    def _check_rights(self) -> None:
        """Nobody reads a product that was never granted to them, or that was taken from them.

        Kafka fences no administrator: a call of a worker that was replaced, or one that was long
        under way, can bring a right back after it was seen gone, until the next look.
        """
        self.world.strange = {
            (name, found)
            for name, found in self.world.strange
            if found in self.world.clusters[name].bindings
        }
        for cluster, found in self._readable():
            pair = (found.principal, found.name)
            strange = (cluster, found) in self.world.strange
            assert pair in self.granted or strange, f"{pair} may be read, but was never granted"
            states = {
                one.state
                for one in self.last.access.requests.values()
                if (one.application, one.product) == pair
            }
            gone = states <= {State.REVOKED, State.DENIED, State.REQUESTED}
            gone = gone or self._is_cut_off(found.principal)
            assert not gone or (cluster, found) not in self.world.given, (
                f"{pair} may be read after it was reported gone"
            )

    def _is_cut_off(self, application: str) -> bool:
        """Whether its domain is in quarantine, and its rights were reported gone."""
        return application.partition(".")[0] in self.last.identity.quarantines and not any(
            one.application == application and (one.is_enforced or one.withdrawing)
            for one in self.last.access.requests.values()
        )

    def check_orders(self) -> None:
        """A worker had all the time it needs: what was taken away by the log is gone.

        Unless a worker without a leadership gave it again: that is drift.
        """
        entitled = {
            (one.application, one.product)
            for one in self.last.access.requests.values()
            if one.state is State.ACTIVE
        }
        for cluster, found in self._readable():
            pair = (found.principal, found.name)
            assert pair in entitled or (cluster, found) not in self.world.given, (
                f"{pair} may be read on {cluster}, and nobody takes it away"
            )

    def _readable(self) -> Iterator[tuple[str, Binding]]:
        for name, cluster in self.world.clusters.items():
            for found in cluster.bindings:
                reads = found.operation in (Operation.READ, Operation.ALL)
                if reads and found.name in PRODUCTS and not found.principal.startswith("mesh."):
                    yield name, found

    def _harmless(self, cluster: str) -> set[Binding]:
        """What an administrator gave and the mesh leaves: no record is shown by it."""
        topics = self.world.clusters[cluster].topics
        return {
            found
            for name, found in self.world.strange
            if name == cluster
            and (found.operation is Operation.DESCRIBE or found.name not in topics)
        }

    def _check_copies(self) -> None:
        """Every copy is an exact prefix of its source."""
        for product in PRODUCTS:
            self._check_copy(product, complete=False)

    def _check_copy(self, product: str, *, complete: bool) -> None:
        copy = self.world.clusters["west"].topics.get(product)
        if copy is None:
            return
        source = self.world.clusters["east"].topics[product]
        origin = f"east/{source.described.id}"
        for number, partition in enumerate(source.partitions):
            wanted = [
                (key, (*headers, (HEADER, f"{origin}/{number}/{at}".encode())))
                for at, (key, headers) in sorted(partition.records.items())
            ]
            # partitions that were added at the source may be still to come
            there = complete or number < len(copy.partitions)
            copied = copy.partitions[number].records if there else {}
            got = [copied[at] for at in sorted(copied)]
            part = wanted if complete else wanted[: len(got)]
            assert got == part, f"the copy of {product}/{number} is {got}, not {part}"

    def finish(self) -> None:
        """All is well again and everybody had time: nothing may be left undone."""
        self.check()
        self.compare()
        image = self.last
        assert not image.intents.undecided, f"undecided: {sorted(image.intents.undecided)}"
        entitled = {
            (one.application, one.product)
            for one in image.access.requests.values()
            if one.state is State.ACTIVE
        }
        assert all(one.state is not State.REVOKING for one in image.access.requests.values())
        readable = {
            (found.principal, found.name)
            for cluster, found in self._readable()
            if found not in self._harmless(cluster)
        }
        assert readable == entitled, f"readable {sorted(readable)}, entitled {sorted(entitled)}"
        for one in image.access.requests.values():
            link = image.links.get(one.link or "")
            if one.state is State.GRANTED and one.consumer not in image.identity.quarantines:
                assert link is not None, f"{one.request} is granted and nothing hinders it"
                assert link.copy.value != "PRESENT" or link.desired.value == "DELETED"
        for cluster, rights in self.world.clusters.items():
            for found in rights.bindings - self._harmless(cluster):
                name = found.principal.partition(".")[0]
                assert name not in image.identity.quarantines, f"{name} is cut off, and has {found}"
        untold = [one.subject for one in desired(image) if not one.reported]
        assert not untold, f"nobody reports what became of {untold}"
        for link in image.links.values():
            if link.state.value == "ACTIVE":
                self._check_copy(link.product, complete=True)
        for key, found in self.world.rows.latest().items():
            assert found == row(image, key), f"the row {key} is {found}"
        for rows in image.catalog, image.access.requests, image.links:
            for name in rows:
                assert any(name == key for _, key in self.world.rows.latest()), f"no row {name}"


COPY = "copy"
"""Stands for both codes of copies: whether an id is forgotten does not matter."""


def _merged(counts: Mapping[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for code, count in counts.items():
        found[COPY if code in ("duplicate_intent", "stale_intent") else code] += count
    return found


def _intent(entry: Entry) -> tuple[str | None, str] | None:
    """(signer, id) of an intent, None for any other record."""
    event: Any = entry.event
    if event is None or type(event).__name__ not in _INTENTS:
        return None
    return entry.signer, event.meta.id


_LINK = ("desired", "state", "generation", "copy", "incarnation", "positions")
_INTENTS = {
    "ClusterRegistered", "DomainRegistered", "ApplicationRegistered", "KeyRegistered", "KeyRevoked",
    "CredentialsRequested", "ProductPublished", "ProductUpdated", "AccessRequested",
    "AccessGranted", "AccessDenied", "AccessRevoked", "LinkCreated", "LinkPaused", "LinkResumed",
    "LinkDeleted", "DomainQuarantined", "DomainReleased", "DomainFrozen", "DomainThawed",
}  # fmt: skip


def _fault(entry: Entry, kind: str | None, signer: Any) -> str | None:
    """The code of a record that can have no effect, whatever is decided in front of it."""
    if entry.fault is not None:
        return entry.fault.code.value
    if signer is None:
        return "unknown_key"
    if kind not in _INTENTS:
        return "forged"
    if signer.role == "root":
        return "unknown_key"
    return "revoked_key" if signer.revoked is not None else None


def _may(kind: str, role: str | None) -> bool:
    """Whether a fact, decision or start is signed by whom it must be; the rest is foundation."""
    if kind in DECISIONS or kind == "GovernorStarted":
        return role == "governor"
    if kind in ("SchemaIntroduced", "MeshFounded", "MeshKeyIntroduced", "MeshKeyRevoked"):
        return role == "root"
    return role == "controller"


def _plain(entry: Entry) -> Plain:
    event = entry.event
    return {
        "offset": entry.offset,
        "time": entry.time,
        "signer": entry.signer,
        "type": event.type_name() if event is not None else None,
        "fields": event.model_dump() if event is not None else {},
    }


def _same(verdict: Verdict, wanted: str, code: str) -> bool:
    """A rejection of what nobody signed properly is told as a quarantine."""
    name = NAMES.get(type(verdict), "Waiting")
    return name == wanted and getattr(verdict, "code", "") == code


class Entries(dict[int, Entry]):
    """Offset -> entry, decoded when it is first asked for."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def __missing__(self, offset: int) -> Entry:
        record = self._world.log.records[offset]
        known = self._world.known
        read = _known if offset <= known.offset else _read
        entry = self[offset] = read(record, known)
        return entry


def understood(entry: Entry, image: Image) -> Entry:
    """A record as it is read after `image`: what a stranger signs is not looked into."""
    if entry.fault is not None or image.identity.knows(entry.signer or ""):
        return entry
    fault = Fault(FaultCode.UNKNOWN_KEY, f"no domain has the key {entry.signer}")
    return Entry(entry.offset, entry.time, None, None, fault)


def _read(record: Record, known: Image) -> Entry:
    return decode(record, known.schemas, known.identity.root)


def _known(record: Record, known: Image) -> Entry:
    """A record that stands in front of every schedule, read once."""
    if record.offset not in _FIRST:
        entry = _read(record, known)
        _FIRST[record.offset] = entry, _plain(entry)
    return _FIRST[record.offset][0]


_FIRST: dict[int, tuple[Entry, Plain]] = {}
