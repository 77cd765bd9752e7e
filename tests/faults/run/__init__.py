"""The fault run: a real mesh under load is broken in every way on a list, and judged after each.

    ./scripts/faults [--only NAME ...] [--list] [--json FILE] [--keep]

`fault.py` says what a fault is, `catalogue.py` lists them in order, `stage.py` is the mesh that
they share with its `load.py` and `prober.py`, `judge.py` what must hold after every one. One module
per family injects. Nothing here imports `projections` or `processors` to judge by; no test of
`./scripts/test` runs it.
"""
