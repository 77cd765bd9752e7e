"""`sdm audit`: the log itself: who did what, the state it gives, and whether it holds."""

# each puts its commands on the noun, in this order
from self_service.cli import audit_log, audit_verify, audit_prove  # isort: skip
from self_service.cli.audit_noun import app

__all__ = ["app", "audit_log", "audit_prove", "audit_verify"]
