"""Checksums that are the same wherever the same log is replayed, also by a later version.

A field that has its default is left out: a version that adds one gives an older log the same.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator

from mesh_events.rows import Row
from projections.identity import Identity
from projections.image import Image
from projections.rows import all_rows


def rows_checksum(rows: Iterable[Row]) -> str:
    """SHA-256 over the rows' canonical JSON without defaults, in the order of topic and key."""
    digest = hashlib.sha256()
    for row in sorted(rows, key=lambda row: (row.topic, row.key)):
        fields = row.model_dump(mode="json", exclude_defaults=True)
        line = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        digest.update(f"{row.topic}\n{row.key}\n{line}\n".encode())
    return digest.hexdigest()


def checksum(image: Image) -> str:
    """SHA-256 over what the log has established: rows, identities, epoch, open offsets."""
    digest = hashlib.sha256(rows_checksum(all_rows(image)).encode())
    digest.update("\n".join(_established(image)).encode())
    return digest.hexdigest()


def _established(image: Image) -> Iterator[str]:
    """One line for everything besides the rows; the words stay the same in every version."""
    identity = image.identity
    yield f"offset {image.offset} epoch {image.epoch} mesh {identity.mesh} root {identity.root}"
    for number, text in sorted(image.schemas.items()):
        yield f"schema {number} {hashlib.sha256(text.encode()).hexdigest()}"
    for _, key in sorted(identity.keys.items()):
        yield f"key {key.public} {key.role} {key.domain} {key.since} {key.revoked}"
    for _, cluster in sorted(identity.clusters.items()):
        where = f"{cluster.bootstrap_servers} {cluster.admin_user} {cluster.admin_password}"
        yield f"cluster {cluster.name} {cluster.generation} {where}"
    for _, domain in sorted(identity.domains.items()):
        rights = sorted(domain.rights.items())
        yield f"domain {domain.name} {domain.owner} {domain.cluster} {domain.generation} {rights}"
    for name, application in sorted(identity.applications.items()):
        yield f"application {name} {application.generation} {sorted(application.rights.items())}"
    for _, login in sorted(identity.credentials.items()):
        yield f"credentials {login.principal} {login.cluster} {login.generation} {login.issued}"
    yield from _jobs(image)
    yield from _held_up(identity)
    for first, last in _undecided(image):
        yield f"undecided {first}" if first == last else f"undecided {first}-{last}"


def _undecided(image: Image) -> Iterator[tuple[int, int]]:
    """Ranges of undecided offsets, the same wherever a record is unusable and where it is not."""
    found = [(offset, offset) for offset in image.intents.undecided]
    for run in image.intents.unusable.runs.values():
        begins = [run.first, *(one + 1 for one in run.exceptions)]
        ends = [*(one - 1 for one in run.exceptions), run.last]
        found += [one for one in zip(begins, ends, strict=True) if one[0] <= one[1]]
    begun: tuple[int, int] | None = None
    for first, last in sorted(found):
        if begun is not None and first == begun[1] + 1:
            begun = begun[0], last
            continue
        if begun is not None:
            yield begun
        begun = first, last
    if begun is not None:
        yield begun


def _jobs(image: Image) -> Iterator[str]:
    for name, link in sorted(image.links.items()):
        topics = f"{link.source_topic_id} {link.destination_topic_id}"
        yield f"link {name} {link.on_revoke} {topics} {sorted(link.positions.items())}"
    for name, one in sorted(image.statements.items()):
        topics = f"{one.stream_topic_id} {one.destination_topic_id}"
        yield f"statement {name} {one.desired} {topics} {sorted(one.positions.items())}"
    for name, connector in sorted(image.connectors.items()):
        config = hashlib.sha256(repr(sorted(connector.config.items())).encode()).hexdigest()
        yield f"connector {name} {connector.desired} {connector.held} {config}"


def _held_up(identity: Identity) -> Iterator[str]:
    for name, freeze in sorted(identity.freezes.items()):
        yield f"freeze {name} {freeze.until} {freeze.generation}"
    for name, quarantine in sorted(identity.quarantines.items()):
        yield f"quarantine {name} {quarantine.generation}"
