"""An image taken apart into its tables and the few values beside them, and put together again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from immutables import Map

from mesh_events.facts import Check, DriftKind
from mesh_events.record import Entry
from projections.access import Access, Accesses
from projections.catalog import Product
from projections.connectors.state import Connector
from projections.deciding.intents import Arrival, Intents
from projections.deciding.unusable import Run, Unusable
from projections.drift import Left
from projections.identity import (
    Application,
    Cluster,
    Credentials,
    Domain,
    Freeze,
    Identity,
    Key,
    Quarantine,
)
from projections.image import DEFAULT_BOUNDS, Bounds, Image, RowKey
from projections.lineage.steps import Key as StepKey
from projections.lineage.steps import Place, Replaced, Step
from projections.links import Link
from projections.quotas.kinds import Kind, Used
from projections.statements import Statement
from projections.table import Table

TABLES: Mapping[str, tuple[Any, Any]] = {
    "starts": (str, int),
    "schemas": (int, str),
    "keys": (str, Key),
    "clusters": (str, Cluster),
    "domains": (str, Domain),
    "applications": (str, Application),
    "credentials": (tuple[str, str], Credentials),
    "freezes": (str, Freeze),
    "quarantines": (str, Quarantine),
    "catalog": (str, Product),
    "carried": (str, str),
    "requests": (str, Access),
    "open": (tuple[str, str], str),
    "by_link": (str, Map[str, int]),
    "standing": (str, Map[str, int]),
    "entitled": (tuple[str, str, str], Map[str, int]),
    "links": (str, Link),
    "statements": (str, Statement),
    "connectors": (str, Connector),
    "replaced": (StepKey, Step),
    "replaced_at": (Place, Map[StepKey, int]),
    "undecided": (int, Entry),
    "checks": (int, Map[str, Check]),
    "seen": (tuple[str | None, str], int),
    "line": (int, Arrival),
    "runs": (int, Run),
    "first_runs": (tuple[int, int], int),
    "waiting": (str, int),
    "remembered": (str, int),
    "drifts": (tuple[str, str, DriftKind], Left),
    "counts": (tuple[str, Kind], Used),
    "table_use": (tuple[str, str, str], Map[str, int]),
    "topic_use": (tuple[str, str], Map[str, int]),
    "task_use": (str, int),
}
"""Name -> (type of the keys, type of the rows)."""


@dataclass(frozen=True, slots=True)
class Rest:
    """What an image holds beside its tables; the names are those of image, identity, intents."""

    offset: int = -1
    time: int = 0
    epoch: int = -1
    clock: int = 0
    skew: int = 0
    worker_skew: int = 0
    agreed: int = 0
    last_decision: str = ""
    ignored: int = 0
    mesh: str = ""
    governance_cluster: str = ""
    root: str | None = None
    line_first: int = 0
    line_next: int = 0
    horizon: int = 0
    touched: tuple[RowKey, ...] = ()
    bounds: Bounds = DEFAULT_BOUNDS
    newest_run: int = -1
    between: tuple[int, ...] = ()


def take_apart(image: Image) -> tuple[Rest, dict[str, Table[Any, Any]]]:
    """What `put_together` makes the image of."""
    identity, intents = image.identity, image.intents
    rest = Rest(
        offset=image.offset,
        time=image.time,
        epoch=image.epoch,
        clock=image.clock,
        skew=image.skew,
        worker_skew=image.worker_skew,
        agreed=image.agreed,
        last_decision=image.last_decision,
        ignored=image.ignored,
        mesh=identity.mesh,
        governance_cluster=identity.governance_cluster,
        root=identity.root,
        line_first=intents.line_first,
        line_next=intents.line_next,
        horizon=intents.horizon,
        touched=image.touched,
        bounds=image.bounds,
        newest_run=intents.unusable.newest,
        between=intents.unusable.between,
    )
    return rest, {
        "starts": image.starts,
        "schemas": image.schemas,
        "keys": identity.keys,
        "clusters": identity.clusters,
        "domains": identity.domains,
        "applications": identity.applications,
        "credentials": identity.credentials,
        "freezes": identity.freezes,
        "quarantines": identity.quarantines,
        "catalog": image.catalog,
        "carried": image.carried,
        "requests": image.access.requests,
        "open": image.access.open,
        "by_link": image.access.by_link,
        "standing": image.access.standing,
        "entitled": image.access.entitled,
        "links": image.links,
        "statements": image.statements,
        "connectors": image.connectors,
        "replaced": image.replaced.steps,
        "replaced_at": image.replaced.at,
        "undecided": intents.undecided,
        "checks": intents.checks,
        "seen": intents.seen,
        "line": intents.line,
        "runs": intents.unusable.runs,
        "first_runs": intents.unusable.firsts,
        "waiting": intents.waiting,
        "remembered": intents.remembered,
        "drifts": image.drifts,
        "counts": image.counts,
        "table_use": image.table_use,
        "topic_use": image.topic_use,
        "task_use": image.task_use,
    }


def put_together(rest: Rest, tables: Mapping[str, Table[Any, Any]]) -> Image:
    """The image of which `take_apart` made these."""
    return Image(
        offset=rest.offset,
        time=rest.time,
        epoch=rest.epoch,
        clock=rest.clock,
        skew=rest.skew,
        worker_skew=rest.worker_skew,
        agreed=rest.agreed,
        last_decision=rest.last_decision,
        starts=tables["starts"],
        ignored=rest.ignored,
        schemas=tables["schemas"],
        identity=Identity(
            mesh=rest.mesh,
            governance_cluster=rest.governance_cluster,
            root=rest.root,
            keys=tables["keys"],
            clusters=tables["clusters"],
            domains=tables["domains"],
            applications=tables["applications"],
            credentials=tables["credentials"],
            freezes=tables["freezes"],
            quarantines=tables["quarantines"],
        ),
        catalog=tables["catalog"],
        carried=tables["carried"],
        access=Accesses(
            tables["requests"],
            tables["open"],
            tables["by_link"],
            tables["standing"],
            tables["entitled"],
        ),
        links=tables["links"],
        statements=tables["statements"],
        connectors=tables["connectors"],
        replaced=Replaced(tables["replaced"], tables["replaced_at"]),
        intents=Intents(
            undecided=tables["undecided"],
            checks=tables["checks"],
            seen=tables["seen"],
            line=tables["line"],
            line_first=rest.line_first,
            line_next=rest.line_next,
            horizon=rest.horizon,
            unusable=Unusable(tables["runs"], rest.newest_run, rest.between, tables["first_runs"]),
            waiting=tables["waiting"],
            remembered=tables["remembered"],
        ),
        drifts=tables["drifts"],
        counts=tables["counts"],
        table_use=tables["table_use"],
        topic_use=tables["topic_use"],
        task_use=tables["task_use"],
        touched=rest.touched,
        bounds=rest.bounds,
    )
