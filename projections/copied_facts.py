"""Copies of facts: anybody can append a copy of a signed record, and it must not count again."""

REMEMBERED = 1000
"""So many ids of the facts that counted last are kept of one thing at its generation."""


def remembered(told: tuple[str, ...], identity: str) -> tuple[str, ...]:
    """The ids of the facts that counted, with one more, the newest last."""
    return (*told[1 - REMEMBERED :], identity)
