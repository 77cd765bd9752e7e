"""`sdm audit log` and `replay`: who did what, and the state that it gives."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from mesh_events.decisions import Decision, RecordsSetAside
from mesh_events.errors import InvalidValueError
from mesh_events.intents import AccessRequested, LinkIntent, domain_of
from mesh_events.meta import MESH_DOMAIN, Kind, milliseconds
from mesh_events.rows import Row
from mesh_events.spelling import nearest
from mesh_events.vocabulary import EVENTS
from processors.clusters.principals import job_name
from projections.access import Access
from projections.checksum import checksum, rows_checksum
from projections.clocks import if_wrong
from projections.image import Image
from projections.links import link_id
from projections.replay import replay as fold_on
from projections.rows import all_rows
from self_service.cli.audit.history import UNREADABLE, History, Step, read
from self_service.cli.audit.noun import app
from self_service.cli.framework import completion
from self_service.cli.framework.exits import FindingError, UsageError
from self_service.cli.framework.options import Reading, command
from self_service.cli.framework.output import Detail, Format, Listing, note_appended, show
from self_service.cli.framework.times import parse_time, stamp
from self_service.cli.mesh import lookup, recall
from self_service.cli.mesh.context import Mesh
from self_service.cli.verification.comparison import Difference, differences, folded, published

COLUMNS = ("offset", "time", "type", "subject", "domain", "actor", "outcome", "detail")
_LEAST_READ = 1000
"""Records that are read for the last steps at least; eight times as many where they do not do."""
_LATE_MS = 5_000
"""A fact that is older than its record by so much may be a copy of one that stands before."""
_OF_DOMAINS = frozenset(
    {"domain", "key", "application", "product", "access", "link", "statement", "connector"}
)
"""Records whose key has a domain behind its kind; that of credentials and rights has a cluster."""
_OF_PRODUCTS = frozenset({"product", "access", "link"})
"""Records whose key has a product behind its kind."""
_NAMED = ("domain", "product", "application", "connector", "statement", "link", "principal")
"""Fields that name a domain, or a thing of one."""
KINDS = (*(kind.value for kind in Kind), UNREADABLE)


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which steps of the log are wanted."""

    domain: Annotated[
        str | None,
        typer.Option(
            "--domain",
            metavar="NAME",
            help="From this domain or about its resources.",
            autocompletion=completion.domains,
        ),
    ] = None
    product: Annotated[
        str | None,
        typer.Option("--product", help="About this product.", autocompletion=completion.products),
    ] = None
    kind: Annotated[
        str | None,
        typer.Option("--kind", help="intent, decision, fact, foundation or unreadable."),
    ] = None
    type: Annotated[
        list[str] | None, typer.Option("--type", help="Event type, such as AccessGranted.")
    ] = None
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="From this time.")
    ] = None
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Up to this time.")
    ] = None
    correlation: Annotated[
        str | None,
        typer.Option("--correlation", help="With this correlation id, or a prefix of it."),
    ] = None

    def compiled(self, now: datetime) -> "Wanted":
        """The filter with its times read; raises InvalidValueError for what no record can have."""
        if self.kind is not None and self.kind not in KINDS:
            raise InvalidValueError(f"--kind {self.kind!r}: use one of {', '.join(KINDS)}")
        for name in self.type or ():
            if name not in (*EVENTS, UNREADABLE):
                near = nearest(name, EVENTS)
                hint = f"did you mean {near}?" if near else f"use {', '.join(sorted(EVENTS))}"
                raise InvalidValueError(f"--type {name!r} is not an event type of the mesh: {hint}")
        since = None if self.since is None else milliseconds(parse_time(self.since, now))
        until = None if self.until is None else milliseconds(parse_time(self.until, now))
        return Wanted(self, since, until)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A filter that can be asked about every record; since, until: ms of the mesh's clock."""

    filter: Filter
    since: int | None
    until: int | None

    def holds(self, one: Step, image: Image) -> bool:
        """Whether a step is wanted; `image` is the state behind the last one."""
        by = self.filter
        return (
            (self.since is None or one.time >= self.since)
            and (self.until is None or one.time <= self.until)
            and by.kind in (None, one.kind)
            and (not by.type or one.type in by.type)
            and (by.domain is None or by.domain in _domains(one, image))
            and (by.product is None or _names(one, by.product))
            and (by.correlation is None or one.correlation.startswith(by.correlation))
        )


def _domains(one: Step, image: Image) -> set[str]:
    """Who said it, whom it names as that, and whose things it is about: owner and reader."""
    event, found = one.event, {one.domain, one.signed_by}
    kind, _, thing = one.key.partition("/")
    if kind in _OF_DOMAINS:
        found.add(thing.partition("/")[0])
    named = [str(getattr(event, name, None) or "") for name in _NAMED]
    named += getattr(event, "topics", ())
    # "application/east.shop"; of a request the id alone
    named.append(str(getattr(event, "subject", "")).partition("/")[2])
    found |= {domain_of(job_name(name) or name) for name in named if name}
    accesses = image.access.requests
    ids = (getattr(event, name, "") for name in ("request", "subject"))
    asked = [accesses[id_] for id_ in ids if id_ in accesses]
    for link in (getattr(event, "link", ""), _link_of(event)):
        asked += image.access.ever_of_link(link)
    for access in asked:
        found |= {access.consumer, domain_of(access.product)}
    return found


def _link_of(event: object) -> str:
    """The link that an intent is about."""
    return link_id(event.product, event.cluster) if isinstance(event, LinkIntent) else ""


def _names(one: Step, product: str) -> bool:
    """Whether a step is about a product, by its own fields or by its key's thing."""
    if getattr(one.event, "product", None) == product:
        return True
    kind, *thing = one.key.split("/")
    if kind in _OF_PRODUCTS:
        return "/".join(thing[:2]).partition("@")[0] == product.replace(".", "/", 1)
    return getattr(one.event, "subject", "") == f"product/{product}"


@command(
    app,
    "log",
    "sdm audit log --limit 20",
    "sdm audit log --product east.users --kind intent",
    "sdm audit log --domain west --since '1h ago' -o json",
)
def log(
    reading: Reading,
    wanted: Filter,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Number of records to show, the latest ones."),
    ] = None,
) -> None:
    """Show intents, decisions and facts with their actors, in the order of the log."""
    # a filter that is wrong is refused before the log is read
    sought = wanted.compiled(datetime.now(UTC))
    mesh = Mesh()
    latest = _latest(mesh, sought, limit) if limit is not None and reading.is_now else None
    history = latest or _history(mesh, reading)
    if wanted.product is not None and reading.is_now:
        lookup.product(history.image, wanted.product)
    if wanted.domain not in (None, MESH_DOMAIN) and reading.is_now:
        lookup.domain(history.image, wanted.domain or "")
    found = items(history, sought, limit, whole=reading.output is not Format.TABLE)
    show(Listing(COLUMNS, found, "no records match"), reading.output)
    if reading.output is Format.TABLE:
        note_appended(found)


def _latest(mesh: Mesh, wanted: "Wanted", limit: int) -> History | None:
    """The end of a long log that holds `limit` wanted steps; None where that is all of it."""
    with mesh.log(start=None) as reader:
        end = reader.partition.bounds()[1]
        length = max(_LEAST_READ, 4 * limit)
        while length < end - recall.SHORT_LOG:
            before = recall.state(mesh, end - length - 1)
            history = read(reader.since(before.offset + 1), start=before)
            if _is_older(history.steps):
                # whether it is a copy, the records before tell
                return None
            if sum(wanted.holds(one, history.image) for one in history.steps) >= limit:
                completion.remember(mesh.home, history.image)
                return history
            length *= 8
    return None


def _is_older(steps: Sequence[Step]) -> bool:
    """Whether the mesh said something before its record was appended, as a copy of it is.

    Decisions are told apart by what they follow, intents by their ids.
    """
    return any(
        one.event is not None
        and one.kind != Kind.INTENT
        and not isinstance(one.event, Decision)
        and milliseconds(one.event.meta.time) < one.appended - _LATE_MS
        for one in steps
    )


def _history(mesh: Mesh, reading: Reading) -> History:
    """The log up to where it is asked for; up to its end in one pass."""
    until = None if reading.is_now else mesh.image(reading).offset
    with mesh.log() as reader:
        history = mesh.fold(reader, lambda *log: read(*log, until=until))
    if reading.is_now:
        completion.remember(mesh.home, history.image)
    return history


def items(
    history: History, wanted: Wanted, limit: int | None = None, *, whole: bool
) -> list[dict[str, Any]]:
    """The wanted steps as lists show them, the last `limit` of them; see `_item`."""
    found = [one for one in history.steps if wanted.holds(one, history.image)]
    requests = history.image.access.requests
    return [_item(one, requests, whole=whole) for one in found[-limit if limit else None :]]


def _domain(one: Step) -> str:
    """The domain that a record names, with the one whose key signed it where it is another."""
    if one.signed_by in ("", one.domain):
        return one.domain
    return f"{one.domain} (signed by {one.signed_by})"


def subject(one: Step, requests: Mapping[str, Access]) -> str:
    """What a step is about, in a few words.

    The product and the application where it is about access; else the thing that its key names.
    `requests` are the accepted ones by their ids: a refused one may have the id of another
    domain's, since an id belongs to its signer.
    """
    if isinstance(one.event, RecordsSetAside):
        return f"records {one.event.offset} to {one.event.last}"
    if one.about is not None:
        return f"record {one.about}"
    event = one.event
    if isinstance(event, AccessRequested):
        return f"{event.product} {event.application}"
    names = (getattr(event, "request", ""), getattr(event, "subject", ""))
    asked = next((requests[name] for name in names if name in requests), None)
    if asked is not None and getattr(event, "product", asked.product) == asked.product:
        return f"{asked.product} {asked.application}"
    kind, _, name = one.key.partition("/")
    return f"{kind} {name.replace('/', '.', 1)}".strip()


def _item(one: Step, requests: Mapping[str, Access], *, whole: bool = True) -> dict[str, Any]:
    """A step as lists show it, with the event's own fields where the `whole` is shown."""
    event = one.event if whole else None
    return {
        "offset": one.offset,
        "time": stamp(one.time),
        "appended": stamp(if_wrong(one.appended, one.time)),
        "kind": one.kind,
        "type": one.type,
        "domain": _domain(one),
        "signed_by": one.signed_by,
        "actor": one.actor,
        "key": one.key,
        "subject": subject(one, requests),
        "outcome": " ".join(filter(None, (one.outcome, one.code))),
        "detail": one.detail,
        "decided_at": one.decided_at,
        "about": one.about,
        "id": one.id,
        "correlation": one.correlation,
        "signer": one.signer,
        "event": event.model_dump(mode="json", exclude={"meta"}) if event else None,
    }


@command(
    app,
    "replay",
    "sdm audit replay",
    "sdm audit replay --compare",
    "sdm audit replay --at-offset 120 -o json",
)
def replay(
    reading: Reading,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Compare with the rows on mesh.*; exit code 8 if they differ."
        ),
    ] = False,
    timeout: Annotated[
        float,
        typer.Option("--timeout", metavar="SECONDS", min=0, help="Time for the rows to catch up."),
    ] = 15.0,
) -> None:
    """Replay the log from its first record and show the state's checksums.

    The same log gives the same checksums on every machine. A field that a later version adds to a
    row does not change them while it has its default.
    """
    mesh = Mesh()
    if compare and not reading.is_now:
        raise UsageError("--compare reads the present state: leave out --as-of and --at-offset")
    began = time.monotonic()
    image = mesh.image(reading, whole_log=True)
    seconds = time.monotonic() - began
    shown = _state(image, seconds)
    if not compare:
        show(Detail(shown), reading.output)
        return
    image, rows, found = _caught_up(mesh, image, timeout)
    shown = _state(image, seconds)
    shown |= {"published_rows_checksum": rows_checksum(rows.values()), "equal": not found}
    columns = ("topic", "key", "kind")
    items = [{"topic": one.topic, "key": one.key, "kind": one.kind} for one in found]
    parts = {"differences": Listing(columns, items)}
    show(
        Detail(shown, parts if items or reading.output is not Format.TABLE else None),
        reading.output,
    )
    if found:
        first = found[0]
        raise FindingError(
            f"{len(found)} rows differ from the log, first {first.key} on {first.topic} "
            f"({first.kind}): restart the governor, which rewrites them"
        )


def _state(image: Image, seconds: float) -> dict[str, Any]:
    records = image.offset + 1
    return {
        "offset": image.offset,
        "time": stamp(image.time),
        "epoch": image.epoch,
        "products": len(image.catalog),
        "requests": len(image.access.requests),
        "links": len(image.links),
        "undecided": image.intents.open_count,
        "ignored": image.ignored,
        "checksum": checksum(image),
        "rows_checksum": rows_checksum(all_rows(image)),
        "seconds": round(seconds, 3),
        "records_per_second": round(records / seconds) if seconds else None,
    }


def _caught_up(
    mesh: Mesh, image: Image, timeout: float
) -> tuple[Image, dict[tuple[str, str], Row], list[Difference]]:
    """Fold on and read the rows again until both agree or the time is over."""
    deadline = time.monotonic() + timeout
    with mesh.log(start=image.offset + 1) as reader:
        while True:
            image = fold_on(reader.to_end(), image)
            rows = published(mesh)
            found = differences(rows, folded(image))
            if not found or time.monotonic() > deadline:
                return image, rows, found
            # what is still on its way to the rows comes with the log's next records, or is late
            reader.partition.poll(0.2)
