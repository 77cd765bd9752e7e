"""Submit an intent: emit it, wait for its decision, and for effects as far as the caller asks."""

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
from self_service.cli.framework.options import SubmitOptions, Until
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
class Submitted:
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


def submit(
    mesh: Mesh,
    who: Caller,
    options: SubmitOptions,
    make: Make,
    *,
    default: Until = Until.DECIDED,
    cause: str | None = None,
    unsaid: Callable[[], None] = lambda: None,
) -> Submitted:
    """Emit an intent and wait as `options` asks.

    Args:
        mesh: where.
        who: in whose name.
        options: the options of the command.
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
    deadline = time.monotonic() + options.timeout
    until = options.until or default
    intent, receipt = _append(mesh, who, options, make, cause, unsaid)
    if not options.wait:
        return Submitted(intent, receipt)
    outcome = _while_passwords_change(lambda: _outcome(mesh, who, receipt, deadline), deadline)
    submitted = Submitted(intent, receipt, outcome)
    if not outcome.accepted:
        interruption.refused(intent.type_name(), receipt.offset, outcome.code)
        if options.output is not Format.TABLE:
            show(Detail(submitted.fields()), options.output)
        raise IntentRefusedError(outcome.code, outcome.reason)
    interruption.decided(intent.type_name(), receipt.offset)
    if until is Until.DECIDED:
        return submitted
    image = _while_passwords_change(
        lambda: await_stage(mesh, who, submitted, until, deadline), deadline
    )
    interruption.reached(intent.type_name(), receipt.offset)
    return Submitted(intent, receipt, outcome, image)


def _append(
    mesh: Mesh,
    who: Caller,
    options: SubmitOptions,
    make: Make,
    cause: str | None,
    unsaid: Callable[[], None],
) -> tuple[Intent, Receipt]:
    may_be_said = False
    try:
        if options.wait:
            mesh.require_governor()
        with mesh.emitter(who, actor_id(options.actor)) as emitter:
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
    """Ask again while the caller's own login is refused: what was submitted may rotate it."""
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


def await_stage(
    mesh: Mesh, who: Caller, submitted: Submitted, until: Until, deadline: float
) -> Image:
    """Fold the log on until the accepted intent has reached `until`; returns the image."""
    from projections.fold import apply
    from projections.replay import entry_of
    from self_service.cli.mesh.recall import state

    assert submitted.outcome is not None  # noqa: S101 - only accepted intents come here
    image = state(mesh, who=who)
    with mesh.log(who, image.offset + 1) as reader:
        while True:
            if image.offset >= submitted.outcome.offset:
                stage = progress(image, submitted.intent, until)
                if stage is Progress.REACHED:
                    return image
                if stage is Progress.OVERTAKEN and (failed := failure(image, submitted.intent)):
                    raise RefusedError(*failed)
                if stage is Progress.OVERTAKEN:
                    raise RefusedError(
                        "overtaken",
                        f"{overtaken(image, submitted.intent)}: "
                        f"see `sdm trace {submitted.receipt.offset}`",
                    )
            left = deadline - time.monotonic()
            if left <= 0:
                raise WaitTimeoutError(_late(image, submitted, until))
            for record in reader.follow(min(left, 0.5)):
                image = apply(image, entry_of(record, image))


def _late(image: Image, submitted: Submitted, until: Until) -> str:
    state = (
        where(image, submitted.intent)
        if submitted.outcome and image.offset >= submitted.outcome.offset
        else ""
    )
    now = f", it is {state} now{awaited(image, submitted.intent)}" if state else ""
    return (
        f"{submitted.intent.type_name()} at offset {submitted.receipt.offset} was accepted but is "
        f"not {until} in time{now}: check again with `sdm trace {submitted.receipt.offset}`"
    )
