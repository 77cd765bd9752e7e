"""The table from intent type to rule, which the rule modules fill."""

from functools import singledispatch

from mesh_events.intents import Intent
from projections.deciding.verdict import DecisionContext, Rejected, Verdict


@singledispatch
def judge(intent: Intent, context: DecisionContext) -> Verdict:
    """The rule for the intent's type; an intent without a rule is refused."""
    del context
    return Rejected("no_rule", f"this mesh has no rule for {intent.type_name()}")
