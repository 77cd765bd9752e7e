"""The table from intent type to rule, which the rule modules fill."""

from functools import singledispatch

from mesh_events.intents import Intent
from projections.deciding.verdict import Case, Rejected, Verdict


@singledispatch
def judge(intent: Intent, case: Case) -> Verdict:
    """The rule for the intent's type; an intent without a rule is refused."""
    del case
    return Rejected("no_rule", f"this mesh has no rule for {intent.type_name()}")
