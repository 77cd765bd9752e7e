"""How people reach the mesh without knowing brokers.

What lives here: `cli`, the command line `sdm`.
What does not: rules and state (see `projections`), effects (see `processors`).
Comes in: what a person types. Goes out: signed intents on the log, and answers as tables or JSON.
Start reading with `cli/app.py`.
"""
