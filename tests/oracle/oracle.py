"""What a log says, worked out in the most naive way: the whole log again, plain dictionaries.

Written from the design alone, without a line of the code that it is compared with. A record is
{offset, time, signer, type, fields}; `type` is None for what cannot be read.
"""

from typing import Any

Plain = dict[str, Any]
DECISIONS = {"IntentAccepted", "IntentRejected", "IntentQuarantined", "RecordsSetAside"}
GOVERNORS = DECISIONS | {"GovernorStarted"}
CONTROLLERS = {
    "CheckPassed", "CheckFailed", "CredentialsIssued", "AclApplied", "AclRemoved", "EffectFailed",
    "LinkActivated", "LinkAdvanced", "LinkStopped", "LinkFailed", "CopyPurged", "CopyRetained",
    "DriftFound",
    "StatementActivated", "StatementAdvanced", "StatementHalted", "StatementFailed",
    "ConnectorActivated", "ConnectorFailed", "ConnectorHalted",
}  # fmt: skip
ROOTS = {"MeshFounded", "MeshKeyIntroduced", "MeshKeyRevoked"}
NO_INTENTS = GOVERNORS | CONTROLLERS | ROOTS | {"SchemaIntroduced", None}
DESIRED = {"LinkPaused": "PAUSED", "LinkResumed": "RUNNING", "LinkDeleted": "DELETED"}
WAITING = {"PAUSED": "PAUSING", "RUNNING": "CREATED", "DELETED": "DELETING"}
DIRECTED = {
    "StatementStarted": ("RUNNING", "CREATED"),
    "StatementStopped": ("PAUSED", "STOPPING"),
    "StatementDeleted": ("DELETED", "DELETING"),
    "ConnectorStarted": ("RUNNING", "CREATED"),
    "ConnectorStopped": ("PAUSED", "STOPPING"),
    "ConnectorDeleted": ("DELETED", "DELETING"),
}


class ImpossibleError(Exception):
    """The log accepts something about a thing that does not exist."""


def tell(records: list[Plain]) -> Plain:
    """Products, accesses, jobs, undecided offsets, epoch and uncounted decisions."""
    waiting, effects, epoch, uncounted = _history(records)
    said: Plain = {"domains": {}, "products": {}, "accesses": {}, "links": {}, "told": set()}
    said["statements"] = {}
    said["connectors"] = {}
    try:
        for effect in effects:
            _happens(said, *effect)
    except KeyError as missing:
        raise ImpossibleError(str(missing)) from missing
    del said["told"]
    return {**said, "undecided": sorted(waiting), "epoch": epoch, "uncounted": uncounted}


def _history(records: list[Plain]) -> tuple[Plain, list[tuple[Plain, int]], int, int]:
    """Undecided records, (accepted intent or fact, offset of effect) in order, epoch, uncounted."""
    keys: Plain = {"senders": set()}
    so_far: Plain = {"waiting": {}, "effects": [], "epoch": -1, "last": "", "uncounted": 0}
    starts: list[str] = []
    # intents whose signer may say something, by signer and id: another one is a copy
    known: set[tuple[str, str]] = set()
    for record in records:
        kind, fields, offset = record["type"], record["fields"], record["offset"]
        if kind == "SchemaIntroduced":
            keys.setdefault("root", [record["signer"]])
        if not _authentic(record, keys):
            says_nothing = kind in NO_INTENTS or record["signer"] not in keys["senders"]
            if not says_nothing:
                name = record["signer"], fields["meta"]["id"]
                says_nothing = name in known
                known.add(name)
            so_far["waiting"][offset] = {**record, "type": None if says_nothing else kind}
        elif kind in ROOTS:
            _rekeyed(keys, kind, fields)
        elif kind in CONTROLLERS:
            so_far["effects"].append((record, offset))
        elif kind == "GovernorStarted" and _begins(fields, so_far["epoch"], starts):
            so_far.update(epoch=offset, last=fields["meta"]["id"])
            starts.append(fields["meta"]["id"])
        elif kind in DECISIONS and _next(record, so_far):
            _decided(record, so_far, keys)
        elif kind in GOVERNORS:
            so_far["uncounted"] += 1
    return so_far["waiting"], so_far["effects"], so_far["epoch"], so_far["uncounted"]


def _begins(fields: Plain, epoch: int, starts: list[str]) -> bool:
    """A start counts once, and behind the start that it names."""
    is_next = fields.get("previous_epoch") in (None, epoch)
    return is_next and fields["meta"]["id"] not in starts


def _decided(record: Plain, so_far: Plain, keys: Plain) -> None:
    """A decision counts: on one record, or on all of a range but the exceptions."""
    kind, fields, waiting = record["type"], record["fields"], so_far["waiting"]
    so_far["last"] = fields["meta"]["id"]
    if kind == "RecordsSetAside":
        for offset in range(fields["offset"], fields["last"] + 1):
            if offset not in fields["exceptions"]:
                waiting.pop(offset, None)
        return
    decided = waiting.pop(fields["offset"])
    if kind != "IntentAccepted":
        return
    so_far["effects"].append((decided, record["offset"]))
    public = decided["fields"].get("public_key")
    if decided["type"] in ("DomainRegistered", "KeyRegistered"):
        keys["senders"].add(public)
    elif decided["type"] == "KeyRevoked":
        keys["senders"].discard(public)


def _next(decision: Plain, so_far: Plain) -> bool:
    """Whether a decision is of the latest epoch, follows the last one, and is about what waits."""
    fields, epoch = decision["fields"], so_far["epoch"]
    of_epoch = fields["epoch"] == epoch >= 0 and epoch <= fields["basis"] < decision["offset"]
    if decision["type"] == "RecordsSetAside":
        about = fields["last"] <= fields["basis"]
    else:
        about = fields["offset"] in so_far["waiting"]
    return of_epoch and about and fields["follows"] == so_far["last"]


def _authentic(record: Plain, keys: Plain) -> bool:
    """Whether the record is signed by whom its type needs; intents need a decision instead."""
    kind, signer = record["type"], record["signer"]
    if kind == "SchemaIntroduced":
        return signer in keys["root"] + keys.get("governor", [])
    if kind in ROOTS:
        return signer in keys.get("root", []) and not (kind == "MeshFounded" and "ever" in keys)
    wanted = "governor" if kind in GOVERNORS else "controller" if kind in CONTROLLERS else None
    return signer in keys.get(wanted, [])


def _rekeyed(keys: Plain, kind: str, fields: Plain) -> None:
    """The root names the mesh's keys, gives a part of it another one, or takes one for good."""
    if kind == "MeshFounded":
        keys.update(governor=[fields["governor_key"]], controller=[fields["controller_key"]])
        keys["ever"] = {fields[name] for name in ("operator_key", "governor_key", "controller_key")}
        keys["senders"] |= keys["ever"]
        return
    public, role = fields["public_key"], fields.get("role", "").lower()
    if kind == "MeshKeyRevoked":
        keys["senders"].discard(public)
        for name in ("governor", "controller"):
            keys[name] = [one for one in keys.get(name, []) if one != public]
    elif public not in keys.setdefault("ever", set()) and role != "unknown":
        keys[role] = [*keys.get(role, []), public]
        keys["ever"].add(public)
        keys["senders"].add(public)


def _happens(said: Plain, record: Plain, offset: int) -> None:
    """An accepted intent or a fact changes what is said; KeyError if it is about nothing."""
    kind, fields = record["type"], record["fields"]
    if kind is None:
        raise KeyError("what cannot be read was accepted")
    if kind == "DomainRegistered":
        said["domains"][fields["domain"]] = fields["cluster"]
    elif kind == "ProductPublished":
        home = said["domains"][fields["product"].split(".")[0]]
        said["products"][fields["product"]] = {**fields, "cluster": home, "generation": offset}
    elif kind == "ProductUpdated":
        given = {name: value for name, value in fields.items() if value is not None}
        said["products"][fields["product"]] |= {**given, "generation": offset}
    elif kind in ("DomainQuarantined", "DomainReleased"):
        _cut(said, kind, fields, offset)
    elif kind.startswith(("Access", "Acl")):
        _access(said, kind, fields, offset)
    elif kind in DESIRED or kind.startswith(("Link", "Copy")):
        _link(said, kind, fields, offset)
    elif kind.startswith("Statement"):
        _statement(said, kind, fields, offset)
    elif kind.startswith("Connector"):
        _connector(said, kind, fields, offset)


def _cut(said: Plain, kind: str, fields: Plain, offset: int) -> None:
    """What a domain reads is taken from it, or given again."""
    for access in said["accesses"].values():
        reads = access["application"].split(".")[0] == fields["domain"]
        if reads and access["state"] in ("GRANTED", "ACTIVE"):
            access |= {"state": "GRANTED", "generation": offset, "cut": kind[6:] != "Released"}


def _statement(said: Plain, kind: str, fields: Plain, offset: int) -> None:
    """A text that fills a topic; a fact about it counts once, for its generation."""
    name, known = fields["statement"], said["statements"]
    fresh = {"generation": offset, "failure": None}
    if kind == "StatementAdded":
        home, past = said["domains"][name.split(".")[0]], known.get(name, {"incarnation": 0})
        state = {"desired": "RUNNING", "state": "CREATED", "positions": {}, **fresh}
        known[name] = {**fields, "cluster": home, "incarnation": past["incarnation"], **state}
    elif kind == "StatementUpdated":
        worded = {one: fields[one] for one in ("sql", "stream", "tables", "names", "application")}
        state = "CREATED" if known[name]["desired"] == "RUNNING" else known[name]["state"]
        known[name] |= {**worded, "state": state, **fresh}
    elif kind in DIRECTED:
        desired, state = DIRECTED[kind]
        known[name] |= {"desired": desired, "state": state, **fresh}
    elif name in known:
        one, mark = known[name], (fields["meta"]["id"], known[name]["generation"])
        before = {**one, "positions": dict(one["positions"])}
        if mark not in said["told"] and _same(one, fields, "generation"):
            _stated(one, kind, fields)
        if one != before and kind != "StatementAdvanced":
            said["told"].add(mark)


def _connector(said: Plain, kind: str, fields: Plain, offset: int) -> None:
    """What Kafka Connect is to run; a fact about it counts once, for its generation."""
    name, known = fields["connector"], said["connectors"]
    fresh = {"generation": offset, "failure": None, "restarts": 0}
    if kind == "ConnectorAdded":
        home = said["domains"][name.split(".")[0]]
        state = {"desired": "RUNNING", "state": "CREATED", "tasks": 0, **fresh}
        # those of this story capture tables, and read no topic
        known[name] = {**fields, "cluster": home, "topic_ids": {}, **state}
    elif kind == "ConnectorUpdated":
        state = "CREATED" if known[name]["desired"] == "RUNNING" else known[name]["state"]
        given = {one: fields[one] for one in ("config", "application")}
        known[name] |= {**given, "state": state, **fresh}
    elif kind in DIRECTED:
        desired, state = DIRECTED[kind]
        known[name] |= {"desired": desired, "state": state, **fresh}
    elif name in known and _same(known[name], fields, "generation"):
        one, mark = known[name], (fields["meta"]["id"], fields["generation"])
        before, runs = dict(one), one["desired"] == "RUNNING"
        if mark in said["told"]:
            return
        if kind == "ConnectorActivated" and runs:
            restarts = one["restarts"] + max(0, fields["restarts"])
            one.update(state="ACTIVE", tasks=fields["tasks"], restarts=restarts, failure=None)
            one.update(run=fields["run"], principal=fields["principal"])
        elif kind == "ConnectorHalted" and not runs:
            state = "STOPPED" if one["desired"] == "PAUSED" else "DELETED"
            one.update(state=state, tasks=0, failure=None)
        elif kind == "ConnectorFailed":
            one.update(state="FAILED", failure=fields["reason"])
        if one != before:
            said["told"].add(mark)


def _stated(one: Plain, kind: str, fact: Plain) -> None:
    runs = one["desired"] == "RUNNING"
    if kind == "StatementActivated":
        if not runs or fact["incarnation"] < one["incarnation"]:
            return
        one.update(state="ACTIVE", incarnation=fact["incarnation"], failure=None)
    elif kind == "StatementHalted":
        if runs:
            return
        one.update(state="STOPPED" if one["desired"] == "PAUSED" else "DELETED", failure=None)
    elif kind == "StatementFailed":
        one.update(state="FAILED", failure=fact["reason"])
    for name in ("positions", "written", "dead"):
        for partition, position in fact.get(name, {}).items():
            if position > one.get(name, {}).get(partition, -1):
                one[name] = {**one.get(name, {}), partition: position}


def _link(said: Plain, kind: str, fields: Plain, offset: int) -> None:
    name = fields.get("link") or f"{fields['product']}@{fields['cluster']}"
    if kind == "LinkCreated":
        _created(said, fields, offset)
    elif kind in DESIRED:
        change = {"desired": DESIRED[kind], "state": WAITING[DESIRED[kind]], "generation": offset}
        said["links"][name] |= change
        for access in said["accesses"].values() if kind == "LinkDeleted" else ():
            if access["link"] == name and access["state"] in ("GRANTED", "ACTIVE"):
                access |= {"state": "GRANTED", "generation": offset}
    elif name in said["links"]:
        link = said["links"][name]
        before, mark = dict(link), (fields["meta"]["id"], link["generation"])
        if mark not in said["told"]:
            _reported(link, kind, fields)
        if link != before and kind != "LinkAdvanced":
            said["told"].add(mark)


def _access(said: Plain, kind: str, fields: Plain, offset: int) -> None:
    accesses = said["accesses"]
    if kind == "AccessRequested":
        cluster = said["domains"][fields["application"].split(".")[0]]
        elsewhere = said["products"][fields["product"]]["cluster"] != cluster
        carrier = f"{fields['product']}@{cluster}" if elsewhere else None
        request = {"cluster": cluster, "link": carrier, "state": "REQUESTED", "generation": offset}
        accesses[fields["meta"]["id"]] = {**fields, **request}
    elif kind.startswith("Access"):
        state = {"AccessGranted": "GRANTED", "AccessDenied": "DENIED"}.get(kind, "REVOKING")
        accesses[fields["request"]] |= {"state": state, "generation": offset}
    elif fields["subject"] in accesses:
        access = accesses[fields["subject"]]
        before, after = {"AclApplied": ("GRANTED", "ACTIVE")}.get(kind, ("REVOKING", "REVOKED"))
        cut = kind == "AclApplied" and access.get("cut")
        if not cut and access["state"] == before and _same(access, fields, "generation", "cluster"):
            access["state"] = after


def _created(said: Plain, fields: Plain, offset: int) -> None:
    name, source = f"{fields['product']}@{fields['cluster']}", said["products"][fields["product"]]
    new = {"copy": "NONE", "incarnation": 0, "positions": {}, "destination": None}
    past = said["links"].get(name, new)
    known = new if past["copy"] == "PURGED" else past
    said["links"][name] = {
        "desired": "RUNNING",
        "state": "CREATED",
        "generation": offset,
        "copy": past["copy"],
        "incarnation": past["incarnation"],
        "source": (source["cluster"], source["topic"]),
        "positions": known["positions"],
        # nobody knows what the source holds before the next start
        "source_ends": {},
        "destination": known["destination"],
    }


def _reported(link: Plain, kind: str, fact: Plain) -> None:
    """A fact about a link counts for its generation, and only for what the link should be doing."""
    wants = {"LinkActivated": {"RUNNING"}, "LinkStopped": {"PAUSED", "DELETED"}} | {
        "CopyPurged": {"DELETED"}, "CopyRetained": {"DELETED"}}  # fmt: skip
    if not _same(link, fact, "generation") or link["desired"] not in wants.get(kind, WAITING):
        return
    if kind == "LinkActivated":
        if fact["incarnation"] < link["incarnation"]:
            return
        if link["destination"] not in (None, fact["destination_topic_id"]):
            link["positions"] = {}
        link.update(state="ACTIVE", copy="PRESENT", incarnation=fact["incarnation"])
        link["destination"] = fact["destination_topic_id"]
        link["source_ends"] = fact["source_ends"]
    elif kind == "LinkAdvanced":
        known = _same(link, fact, "incarnation") and fact["source_ends"]
        link["source_ends"] = known or link["source_ends"]
    elif kind == "LinkFailed":
        link.update(state="FAILED")
    elif kind == "LinkStopped" and link["desired"] == "PAUSED":
        link.update(state="PAUSED")
    elif kind in ("CopyPurged", "CopyRetained"):
        link.update(state="DELETED", copy=kind.removeprefix("Copy").upper())
    positions = {**fact.get("positions", {})}
    for partition, known in link["positions"].items():
        positions[partition] = max(known, positions.get(partition, known))
    link["positions"] = positions


def _same(thing: Plain, fact: Plain, *names: str) -> bool:
    return all(thing[name] == fact[name] for name in names)
