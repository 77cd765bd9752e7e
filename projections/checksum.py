"""Checksums that are the same wherever and by whichever version the same log is replayed."""

import hashlib
import json
from collections.abc import Iterable

from mesh_events.rows import Row
from projections.image import Image
from projections.rows import all_rows


def rows_checksum(rows: Iterable[Row]) -> str:
    """SHA-256 over the rows' canonical JSON, in the order of topic and key."""
    digest = hashlib.sha256()
    for row in sorted(rows, key=lambda row: (row.topic, row.key)):
        line = json.dumps(row.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        digest.update(f"{row.topic}\n{row.key}\n{line}\n".encode())
    return digest.hexdigest()


def checksum(image: Image) -> str:
    """SHA-256 over what the log has established: rows, identities, epoch, open offsets."""
    digest = hashlib.sha256(rows_checksum(all_rows(image)).encode())
    identity = image.identity
    parts = [
        f"offset {image.offset} epoch {image.epoch} mesh {identity.mesh} root {identity.root}",
        *(f"schema {number}" for number in sorted(image.schemas)),
        *(
            f"key {key.public} {key.role} {key.domain} {key.revoked}"
            for _, key in sorted(identity.keys.items())
        ),
        *(
            f"cluster {name} {identity.clusters[name].generation}"
            for name in sorted(identity.clusters)
        ),
        *(
            f"domain {found.name} {found.owner} {found.cluster} {found.generation}"
            for _, found in sorted(identity.domains.items())
        ),
        *(
            f"application {name} {identity.applications[name].generation}"
            for name in sorted(identity.applications)
        ),
        *(
            f"credentials {found.principal} {found.cluster} {found.generation} {found.issued}"
            for _, found in sorted(identity.credentials.items())
        ),
        *(f"undecided {offset}" for offset in sorted(image.intents.undecided)),
    ]
    digest.update("\n".join(parts).encode())
    return digest.hexdigest()
