"""`sdm audit`: the log itself: who did what, the state it gives, and whether it holds."""

# each puts its commands on the noun, in this order
from self_service.cli.audit import log, verify, prove  # isort: skip
from self_service.cli.audit.noun import app

__all__ = ["app", "log", "prove", "verify"]
