"""Figures of the mesh, measured on real servers and told with machine, load and versions.

What lives here: one module per figure and the workloads they share; `./scripts/bench NAME` prints
a table and writes `results/NAME.json` and the tables of `docs/figures.md` and the README. Nothing
here is asserted: a figure is a ratio to a floor or a peer of the same run. A new one is a module,
an entry in `catalogue.py` and its rows in `rows.py`. Start reading with `catalogue.py`.
"""
