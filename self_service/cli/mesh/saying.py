"""Saying an intent: emit it, wait for the decision, and as far as the caller wants for effects."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from mesh_events.emit import Outcome, Receipt, outcome_of
from mesh_events.errors import (
    ConfigurationError,
    LoginRefusedError,
    RefusedError,
    WaitTimeoutError,
)
from mesh_events.intents import Intent
from mesh_events.meta import Meta
from projections.image import Image
from self_service.cli.framework import interruption
from self_service.cli.framework.options import Saying, Until
from self_service.cli.framework.output import Detail, Format, show
from self_service.cli.mesh.callers import Caller, actor_id
from self_service.cli.mesh.context import Mesh
from self_service.cli.mesh.stages import Progress, awaited, failure, overtaken, progress, where

Make = Callable[[Meta], Intent]
T = TypeVar("T")
ROTATION_S = 10.0
"""A login that worked a moment ago and is refused now is being changed: for so long at most."""


class IntentRefusedError(RefusedError):
    """The governor's decision: the intent has no effect, and never will have one."""


@dataclass(frozen=True, slots=True)
class Said:
    """An intent on the log: what Kafka acknowledged, what was decided, the state afterwards.

    `outcome` is None where nobody waited for it; `image` is set where effects were waited for.
    """

    intent: Intent
    receipt: Receipt
    outcome: Outcome | None = None
    image: Image | None = None

    def fields(self) -> dict[str, Any]:
        """What is shown of it."""
        outcome = self.outcome
        shown: dict[str, Any] = {
            "intent": self.intent.type_name(),
            "about": self.intent.key,
            "id": self.receipt.id,
            "offset": self.receipt.offset,
            "decision": "not waited for",
        }
        if outcome is not None:
            shown["decision"] = "accepted" if outcome.accepted else "refused"
            shown["decision_offset"] = outcome.offset
        if outcome is not None and not outcome.accepted:
            shown |= {"code": outcome.code, "reason": outcome.reason}
        if self.image is not None and (state := where(self.image, self.intent)):
            shown["state"] = state
        return shown


def say(
    mesh: Mesh,
    who: Caller,
    saying: Saying,
    make: Make,
    *,
    default: Until = Until.DECIDED,
    cause: str | None = None,
    unsaid: Callable[[], None] = lambda: None,
) -> Said:
    """Emit an intent and wait as `saying` asks.

    Args:
        mesh: where.
        who: in whose name.
        saying: the options of the command.
        make: the intent from its `meta`.
        default: how far to wait where the caller does not say.
        cause: id of the event that this one answers; the conversation goes on under it.
        unsaid: called where it has failed, and the intent is not on the log for certain.

    Raises:
        ConfigurationError: the governor's key of this home was revoked.
        IntentRefusedError: the governor's refusal, with its code.
        RefusedError: Kafka's; or what is accepted cannot come so far, and why.
        WaitTimeoutError: not decided, or not as far as wanted, in time.
    """
    deadline = time.monotonic() + saying.timeout
    until = saying.until or default
    intent, receipt = _submit(mesh, who, saying, make, cause, unsaid)
    if not saying.wait:
        return Said(intent, receipt)
    outcome = _while_passwords_change(lambda: _outcome(mesh, who, receipt, deadline), deadline)
    said = Said(intent, receipt, outcome)
    if not outcome.accepted:
        if saying.output is not Format.TABLE:
            show(Detail(said.fields()), saying.output)
        raise IntentRefusedError(outcome.code, outcome.reason)
    interruption.decided(intent.type_name(), receipt.offset)
    if until is Until.DECIDED:
        return said
    image = _while_passwords_change(lambda: await_stage(mesh, who, said, until, deadline), deadline)
    return Said(intent, receipt, outcome, image)


def _submit(
    mesh: Mesh,
    who: Caller,
    saying: Saying,
    make: Make,
    cause: str | None,
    unsaid: Callable[[], None],
) -> tuple[Intent, Receipt]:
    may_be_said = False
    try:
        if saying.wait:
            mesh.require_governor()
        with mesh.emitter(who, actor_id(saying.actor)) as emitter:
            intent = make(emitter.meta(correlation=cause, causation=cause))
            interruption.submitting(intent.type_name())
            may_be_said = True
            receipt = emitter.emit(intent)
            interruption.submitted(intent.type_name(), receipt.offset)
    except BaseException as error:
        # behind these errors an emitter has appended nothing
        if not may_be_said or isinstance(error, RefusedError | ConfigurationError):
            unsaid()
        raise
    return intent, receipt


def _while_passwords_change(ask: Callable[[], T], deadline: float) -> T:
    """Ask again while the speaker's own login is refused: what was said may be its rotation."""
    last = min(deadline, time.monotonic() + ROTATION_S)
    while True:
        try:
            return ask()
        except LoginRefusedError:
            if time.monotonic() > last:
                raise


def _outcome(mesh: Mesh, who: Caller, receipt: Receipt, deadline: float) -> Outcome:
    left = max(0.1, deadline - time.monotonic())
    keys = mesh.profile.keys
    return outcome_of(receipt, mesh.governance(who), mesh.registry, keys, timeout=left)


def await_stage(mesh: Mesh, who: Caller, said: Said, until: Until, deadline: float) -> Image:
    """Fold the log on until the accepted intent has reached `until`; returns the image."""
    from projections.fold import apply
    from projections.replay import entry_of
    from self_service.cli.mesh.recall import state

    assert said.outcome is not None  # noqa: S101 - only accepted intents come here
    image = state(mesh, who=who)
    with mesh.log(who, image.offset + 1) as reader:
        while True:
            if image.offset >= said.outcome.offset:
                stage = progress(image, said.intent, until)
                if stage is Progress.REACHED:
                    return image
                if stage is Progress.OVERTAKEN and (failed := failure(image, said.intent)):
                    raise RefusedError(*failed)
                if stage is Progress.OVERTAKEN:
                    raise RefusedError(
                        "overtaken",
                        f"{overtaken(image, said.intent)}: see `sdm trace {said.receipt.offset}`",
                    )
            left = deadline - time.monotonic()
            if left <= 0:
                raise WaitTimeoutError(_late(image, said, until))
            for record in reader.follow(min(left, 0.5)):
                image = apply(image, entry_of(record, image))


def _late(image: Image, said: Said, until: Until) -> str:
    state = (
        where(image, said.intent) if said.outcome and image.offset >= said.outcome.offset else ""
    )
    now = f", it is {state} now{awaited(image, said.intent)}" if state else ""
    return (
        f"{said.intent.type_name()} at offset {said.receipt.offset} was accepted but is not "
        f"{until} in time{now}: look again with `sdm trace {said.receipt.offset}`"
    )
