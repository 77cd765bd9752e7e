"""The checkpoints controller: signs the head of the tree over the log, while this worker leads."""

import time

import structlog

from mesh_events.errors import MeshError
from mesh_events.signing import SigningKey
from processors.controllers.controller import Leadership
from processors.log.checkpoint_store import CheckpointStore
from processors.log.watch import LogWatch
from projections.identity import Role
from projections.image import Image

log = structlog.get_logger(__name__)


class CheckpointsController:
    """Signs over every `records` new records, or `seconds` after the first of them.

    Args:
        watch: the verifier of this worker's fold.
        store: where checkpoints go.
        key: the controller's signing key.
        records: a checkpoint covers at most so many.
        seconds: the longest that a record waits for its checkpoint.
    """

    name = "checkpoints"

    def __init__(
        self,
        watch: LogWatch,
        store: CheckpointStore,
        key: SigningKey,
        records: int,
        seconds: float,
    ) -> None:
        self._watch, self._store, self._key = watch, store, key
        self._records, self._seconds = records, seconds
        self._epoch: int | None = None
        self._since: float | None = None

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        """Make both places equal once per leadership, then sign what is due."""
        if not image.identity.has_role(self._key.public, Role.CONTROLLER):
            return
        try:
            if self._epoch != leadership.epoch:
                self._watch.equalize()
                self._epoch = leadership.epoch
            self._sign(leadership)
        except MeshError as error:
            # the next look reads both places again, and goes on from there
            self._epoch = None
            log.warning("checkpoint_not_written", error=str(error))

    def _sign(self, leadership: Leadership) -> None:
        while self._is_due():
            body = self._watch.due(self._store.origin, self._records)
            if body is None:
                return
            leadership.check()
            self._store.append(body.sign(self._key))
            self._watch.signed(body)
            self._since = None
            log.info("checkpoint_signed", size=body.size, offset=body.offset)

    def _is_due(self) -> bool:
        waiting, clock = self._watch.unconfirmed, time.monotonic()
        if not waiting:
            self._since = None
            return False
        self._since = self._since if self._since is not None else clock
        return waiting >= self._records or clock - self._since >= self._seconds
