"""What must be true of a log, told without the code that makes it true."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.plain_reader import Plain

DECISIONS = ("IntentAccepted", "IntentRejected", "IntentQuarantined")


@dataclass
class Told:
    """The log as read by a few plain rules.

    `decided` maps the offset of a record to the decision that counts; `written` counts all
    decisions on it; `void` are those that came under an old epoch or a second time.
    """

    epoch: int = -1
    intents: dict[int, dict[str, Any]] = field(default_factory=dict)
    decided: dict[int, dict[str, Any]] = field(default_factory=dict)
    written: Counter[int] = field(default_factory=Counter)
    void: list[dict[str, Any]] = field(default_factory=list)

    def accepted(self, kind: str) -> list[dict[str, Any]]:
        """Accepted intents of a kind, in the order of their decisions."""
        return [
            self.intents[offset]
            for offset, decision in self.decided.items()
            if decision["type"] == "IntentAccepted" and self.intents[offset]["type"] == kind
        ]

    def entitled(self) -> set[tuple[str, str]]:
        """(application, topic) of every grant in force, for domains that share a cluster."""
        topics = {each["product"]: each["topic"] for each in self.accepted("ProductPublished")}
        requests = {each["meta"]["id"]: each for each in self.accepted("AccessRequested")}
        granted = {each["request"] for each in self.accepted("AccessGranted")}
        granted -= {each["request"] for each in self.accepted("AccessRevoked")}
        asked = (requests[request] for request in granted)
        return {(each["application"], topics[each["product"]]) for each in asked}


def told(plain: Plain) -> Told:
    """Read the whole log."""
    found, starts = Told(), set()
    for message in plain.messages("mesh.governance"):
        event = plain.decoded(message.value())
        if event["type"] == "GovernorStarted" and event["meta"]["id"] not in starts:
            starts.add(event["meta"]["id"])
            found.epoch = message.offset()
        elif event["type"] in DECISIONS:
            found.written[event["offset"]] += 1
            if event["epoch"] == found.epoch and event["offset"] not in found.decided:
                found.decided[event["offset"]] = event
            else:
                found.void.append(event)
        else:
            found.intents[message.offset()] = event
    return found
