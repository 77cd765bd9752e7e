"""Made-up records: the same seed gives the same ones, on every machine.

What lives here: what a run is made of (`recipe`), the kinds of records there are (`kinds`),
records for any Avro schema (`from_schema`), how often each one is drawn (`chance`), and the loop
that writes them at a rate (`pace`). What does not: which topic, with which login (see
`self_service.cli.generate.generate`).
Start reading with `kinds.py`.
"""
