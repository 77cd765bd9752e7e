"""Faults planted into the mesh, to see that the simulation finds them: each takes a check away."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mesh_events.decisions import Decision
from mesh_events.meta import Event
from mesh_events.record import Record
from mesh_events.signing import SigningKey
from processors.controllers.flows import fence, starting
from processors.controllers.rights.rights import RightsController
from processors.controllers.rights.unexpected import UnexpectedAcls
from processors.controllers.rows import RowsController
from processors.governor import governor
from processors.governor.governor import Governor
from processors.governor.mesh_clock import MeshClock
from processors.governor.ordering import Ordering
from processors.worker import leadership
from processors.worker.leadership import LeaderLease
from projections import access, fold, identity, links
from projections.deciding import intents as pending
from projections.deciding import unusable
from projections.deciding.intents import Intents
from projections.identity import Identity
from projections.image import Image
from tests.memory_log import record_of, sign
from tests.simulation import models

Plant = Callable[[pytest.MonkeyPatch], None]
PLANTED: dict[str, Plant] = {}
UNSEEN = {"a_successor_acts_at_once", "late_reports_of_rights_count"}
"""Planted faults that some thousand schedules did not show: the simulation proves nothing of them.

`tests/unit/processors/worker/test_leadership.py` has a successor wait, and
`tests/unit/projections/test_access.py` has a report of rights come late.
"""


def planted(plant: Plant) -> Plant:
    """Put a fault into the table."""
    PLANTED[plant.__name__] = plant
    return plant


@planted
def decisions_count_under_any_epoch(patch: pytest.MonkeyPatch) -> None:
    real = fold._decided

    def decided(image: Any, entry: Any, event: Any) -> Any:
        changes = {"epoch": image.epoch, "basis": image.epoch, "follows": image.last_decision}
        return real(image, entry, event.model_copy(update=changes))

    patch.setattr(fold, "_decided", decided)


@planted
def a_decision_counts_behind_one_that_was_lost(patch: pytest.MonkeyPatch) -> None:
    real = fold._decided

    def decided(image: Any, entry: Any, event: Any) -> Any:
        return real(image, entry, event.model_copy(update={"follows": image.last_decision}))

    patch.setattr(fold, "_decided", decided)


@planted
def decisions_of_two_epochs_count_side_by_side(patch: pytest.MonkeyPatch) -> None:
    """Each epoch has a chain of its own, which another start does not end."""
    real, real_start = fold._decided, fold._started

    def started(image: Any, entry: Any, event: Any) -> Any:
        after = real_start(image, entry, event)
        if after.epoch == image.epoch:
            return after
        return after._replace(starts=after.starts.set(f"{after.epoch} {event.meta.id}", -1))

    def decided(image: Any, entry: Any, event: Any) -> Any:
        link = f"{event.epoch} {event.follows}"
        if link not in image.starts:
            return real(image, entry, event)
        ends = {"epoch": event.epoch, "last_decision": event.follows}
        after = real(image._replace(**ends), entry, event)
        latest = {"epoch": image.epoch, "last_decision": image.last_decision}
        if after.ignored > image.ignored:
            return after._replace(**latest)
        if event.epoch == image.epoch:
            latest["last_decision"] = event.meta.id
        starts = after.starts.delete(link).set(f"{event.epoch} {event.meta.id}", -1)
        return after._replace(**latest, starts=starts)

    patch.setattr(fold, "_started", started)
    patch.setattr(fold, "_decided", decided)


@planted
def a_decision_names_what_stands_before_it_and_not_what_was_judged(
    patch: pytest.MonkeyPatch,
) -> None:
    """A fact between the two can change the verdict."""
    real = models.Writer.append_record

    def append_record(self: models.Writer, event: Event, by: SigningKey | None = None) -> Record:
        if not isinstance(event, Decision):
            return real(self, event, by)

        def put() -> Record:
            named = event.model_copy(update={"basis": self._log.records[-1].offset})
            self._log.put(record_of(sign(named, by or self.key), 0, 0))
            return self._log.records[-1]

        return self._interrupts.effect(f"append {event.type_name()}", put)

    patch.setattr(models.Writer, "append_record", append_record)


@planted
def a_governors_key_counts_if_it_was_revoked_behind_the_basis(patch: pytest.MonkeyPatch) -> None:
    real = fold._forged

    def forged(image: Any, entry: Any, event: Any, needed: Any) -> Any:
        key = image.identity.keys.get(entry.signer)
        governs = key is not None and key.role == "governor"
        if isinstance(event, Decision) and governs and key.revoked > event.basis:
            return fold._decided(image, entry, event)
        return real(image, entry, event, needed)

    patch.setattr(fold, "_forged", forged)


@planted
def a_key_that_is_revoked_in_the_same_step_speaks_on(patch: pytest.MonkeyPatch) -> None:
    """The revocation is decided between the basis and the decision on what the key has signed."""
    real = governor.decided

    def decided(image: Any, event: Any, signer: str) -> Any:
        after = real(image, event, signer)
        known = replace(after.identity, keys=image.identity.keys)
        return after._replace(identity=known)

    patch.setattr(governor, "decided", decided)


@planted
def a_governor_decides_before_it_has_read_up_to_its_start(patch: pytest.MonkeyPatch) -> None:
    def is_leader(self: Governor) -> bool:
        return self.epoch is not None

    def step(self: Governor) -> Any:
        self.image = self.image._replace(epoch=self.epoch)
        return real(self)

    real = Governor.step
    patch.setattr(Governor, "is_leader", property(is_leader))
    patch.setattr(Governor, "step", step)
    patch.setattr(LeaderLease, "check", lambda _: None)


@planted
def a_start_counts_again_when_it_is_written_again(patch: pytest.MonkeyPatch) -> None:
    def started(image: Any, entry: Any, event: Any) -> Any:
        starts = image.starts.set(event.meta.id, entry.offset)
        return image._replace(epoch=entry.offset, last_decision=event.meta.id, starts=starts)

    patch.setattr(fold, "_started", started)


@planted
def reports_on_rights_count_for_any_generation(patch: pytest.MonkeyPatch) -> None:
    def plant(name: str, waited: str) -> None:
        real = getattr(access, name)

        def reported(known: Any, event: Any, offset: int, time: int) -> Any:
            found = known.requests.get(event.subject)
            if found is not None:
                event = event.model_copy(update={"generation": found.generation})
                more = (*getattr(found, waited), found.generation)
                changed = known.requests.set(found.request, replace(found, **{waited: more}))
                known = replace(known, requests=changed)
            return real(known, event, offset, time)

        patch.setattr(access, name, reported)

    plant("applied", "applying")
    plant("removed", "removing")


@planted
def reports_on_links_count_for_any_generation(patch: pytest.MonkeyPatch) -> None:
    real = links.reported

    def reported(known: Any, event: Any, offset: int, time: int) -> Any:
        link = known.get(event.link)
        if link is not None:
            event = event.model_copy(update={"generation": link.generation})
        return real(known, event, offset, time)

    patch.setattr(links, "reported", reported)


@planted
def earlier_incarnations_keep_the_right_to_write(patch: pytest.MonkeyPatch) -> None:
    def shut(_: Any, ends: Any, __: Any, destination: Any, ___: Any) -> None:
        fence.settle(ends.destination_log, ends.flow.topic, destination.partitions, 0)

    patch.setattr(starting.FlowStart, "_shut", shut)


@planted
def facts_count_under_any_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Identity, "has_role", lambda self, signer, _: self.key_of(signer) is not None)


@planted
def the_same_intent_counts_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Intents, "first_offset", lambda *_: None)


@planted
def copies_wait_for_a_decision(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pending, "repeated", lambda *_: None)


@planted
def rights_are_called_gone_without_a_look(patch: pytest.MonkeyPatch) -> None:
    real = RightsController._settle

    def settle(self: Any, wish: Any, admin: Any, actual: Any, keep: Any, leadership: Any) -> None:
        real(self, wish, admin, actual if wish.wanted else set(), keep, leadership)

    patch.setattr(RightsController, "_settle", settle)
    patch.setattr(RightsController, "_withdraw", lambda *_: True)


@planted
def rights_are_given_before_the_grant(patch: pytest.MonkeyPatch) -> None:
    from processors.controllers.rights import wishes
    from projections.access import State

    real = wishes._of_access

    def of_access(image: Any, one: Any) -> Any:
        if one.state is State.REQUESTED and one.link is None:
            one = replace(one, state=State.GRANTED)
        return real(image, one)

    patch.setattr(wishes, "_of_access", of_access)


@planted
def a_domain_in_quarantine_keeps_what_it_was_granted(patch: pytest.MonkeyPatch) -> None:
    from processors.controllers.rights import wishes

    real = wishes._of_access

    def of_access(image: Any, one: Any) -> Any:
        known = replace(image.identity, quarantines={})
        return real(image._replace(identity=known), one)

    patch.setattr(wishes, "_of_access", of_access)


@planted
def a_range_swallows_a_usable_record(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(unusable, "passed", lambda known, _: known)


@planted
def a_range_counts_what_came_behind_it(patch: pytest.MonkeyPatch) -> None:
    real = unusable._left

    def left(run: Any, first: int, last: int, spared: Any, _: Any) -> Any:
        return real(run, first, last, spared, {})

    patch.setattr(unusable, "_left", left)


@planted
def rows_are_not_repaired(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowsController, "_repair", lambda *_: None)


@planted
def what_was_open_is_forgotten_at_a_new_start(patch: pytest.MonkeyPatch) -> None:
    real = Governor.start

    def start(self: Governor) -> int:
        epoch = real(self)
        self._turns.clear()
        return epoch

    patch.setattr(Governor, "start", start)


@planted
def what_was_undecided_at_a_snapshot_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = Governor.begin

    def begin(self: Governor) -> None:
        real(self)
        self._open.clear()

    patch.setattr(Governor, "begin", begin)


@planted
def revoked_keys_of_the_mesh_count_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(identity, "mesh_key_revoked", lambda found, *_: found)


@planted
def rights_without_a_report_are_taken_for_gone(patch: pytest.MonkeyPatch) -> None:
    from processors.controllers.rights import wishes
    from projections.access import State

    def seen_gone(one: Any) -> bool:
        return one.state is not State.REVOKING and not one.is_enforced

    patch.setattr(wishes, "_seen_gone", seen_gone)


@planted
def a_freeze_is_without_effect(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(identity, "domain_frozen", lambda found, *_: found)


@planted
def revoked_keys_of_domains_speak_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(identity, "key_revoked", lambda found, *_: found)


@planted
def late_reports_of_rights_count(patch: pytest.MonkeyPatch) -> None:
    real = access.removed

    def removed(known: Any, event: Any, offset: int, time: int) -> Any:
        before = known.requests.get(event.subject)
        after = real(known, event, offset, time)
        found = after.requests.get(event.subject)
        if before is None or found is before:
            return after
        late = replace(found, applying=before.applying)
        return replace(after, requests=after.requests.set(found.request, late))

    patch.setattr(access, "removed", removed)


@planted
def an_old_answer_about_the_log_counts_as_new(patch: pytest.MonkeyPatch) -> None:
    def renew(self: LeaderLease, _: float) -> None:
        real(self, leadership.now())

    real = LeaderLease.renew
    patch.setattr(LeaderLease, "renew", renew)


@planted
def a_successor_acts_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LeaderLease, "alone_in", 0.0)


@planted
def the_meshs_clock_is_the_brokers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MeshClock, "now", lambda _, appended: appended)


@planted
def the_meshs_clock_is_the_workers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MeshClock, "now", lambda self, _: round(self._here() * 1000))


@planted
def a_clock_that_was_set_right_is_seen_at_the_next_decision(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fold, "_skew", lambda image, _: image.skew)


@planted
def freezes_end_while_clocks_disagree(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Image, "clocks_disagree", False)


@planted
def rights_that_nobody_granted_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(UnexpectedAcls, "look", lambda *_: None)


@planted
def nobody_is_held_behind_an_earlier_intent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ordering, "holds", lambda *_: False)


@planted
def what_was_held_is_judged_in_reverse(patch: pytest.MonkeyPatch) -> None:
    real = Governor._queue_again

    def queue_again(self: Governor, image: Image, offsets: list[int]) -> None:
        real(self, image, offsets[::-1])

    patch.setattr(Governor, "_queue_again", queue_again)
