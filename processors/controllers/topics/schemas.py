"""The schemas controller: what a published product promises, the registry holds its writers to.

A reader of a product has an older or a newer schema than its writer. So the values of a published
topic follow FULL compatibility, whoever registers: the registry refuses a schema that breaks it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from mesh_events.errors import MeshError
from mesh_events.schema.compatibility import Level
from processors.controllers.controller import Leadership, guarded
from processors.controllers.lanes import Lanes, SerialLanes, for_a_while, in_turn
from projections.image import Image

log = structlog.get_logger(__name__)
STRICT = frozenset({Level.FULL, Level.FULL_TRANSITIVE})
LOOK_S = 60.0
"""Somebody may change a rule in the registry: it is looked at so often."""


class Rules(Protocol):
    """What the registry asks of subjects; methods raise MeshError."""

    def level(self, subject: str) -> Level:
        """The subject's own rule, else the registry's."""

    def set_level(self, subject: str, level: Level) -> None:
        """Give a subject a rule of its own."""


@dataclass
class SchemasController:
    """Keeps the subjects of published products FULL; a stricter rule of their own stays."""

    rules: Rules
    lanes: Lanes = field(default_factory=SerialLanes)
    clock: Callable[[], float] = time.monotonic
    name: str = "schemas"
    _looked: dict[str, float] = field(default_factory=dict)

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        """Look at the subjects that were not looked at for a while."""
        now = self.clock()
        subjects = (one.schema_subject for one in image.catalog.values())
        asked = sorted((self._looked.get(one, float("-inf")), one) for one in subjects)
        due = [subject for at, subject in asked if now - at >= LOOK_S]
        # those that were asked for last have their turn after the others, of each domain one
        due = in_turn(due, lambda subject: subject.partition(".")[0])
        if due:
            self.lanes.run({"registry": lambda: self._keep(due, leadership)}, image, leadership)

    def _keep(self, subjects: list[str], leadership: Leadership) -> None:
        for subject in for_a_while(subjects):
            try:
                with guarded("the registry"):
                    level = self.rules.level(subject)
                    if level not in STRICT:
                        leadership.check()
                        self.rules.set_level(subject, Level.FULL)
                        log.info("compatibility_set", subject=subject, was=level.value)
            except MeshError as error:
                # the others are asked of the same server: they come with the next round
                log.warning("compatibility_not_set", subject=subject, error=str(error))
                self._looked[subject] = self.clock() - LOOK_S
                return
            self._looked[subject] = self.clock()
