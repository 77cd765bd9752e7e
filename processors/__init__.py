"""The worker: one Faust app that folds the log, decides, writes rows, and keeps the world in line.

What lives here: the `governor` (fold, decide, publish), the `controllers` (checks, rights, links,
statements, connectors), the adapters to real clusters (`clusters`, `connect`, `registries`,
`spark`), and one `worker` with its composition root, `__main__.py` and `worker/enforcers.py`.
What does not: rules and state (see `projections`), Spark code (see `spark_streams`).
Comes in: records of `mesh.governance`. Goes out: decisions and facts on the same log, rows on
`mesh.catalog`, `mesh.access`, `mesh.links`, `mesh.statements` and `mesh.connectors`, rights,
copies, streaming SQL and connectors on real clusters.
Start reading with `governor/governor.py`.
"""
