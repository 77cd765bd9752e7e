"""When an intent may take effect: one small rule per intent, by concern.

A rule gets the intent and a `DecisionContext`, and returns a verdict. It is pure: what has to be
asked of a server is named as a check, whose result is in the context. Start with `judge` in
`rules/registry.py`.
"""
