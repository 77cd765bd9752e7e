"""When an intent may take effect: one small rule per intent, by concern.

A rule sees a `Case` and answers with a verdict. It is pure; what needs a look at the world is
named as a check and looked up in the case. Start with `judge` in `rules/ruling.py`.
"""
