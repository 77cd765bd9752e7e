"""Figures of the mesh, measured on real servers and told with machine, load and versions.

What lives here: one module per figure and the workloads they share; `python -m benchmarks NAME`
prints a table and writes JSON. Nothing here is asserted: a figure is a ratio to a floor or a peer
of the same run. Start reading with `report.py`, then `replay.py`.
"""
