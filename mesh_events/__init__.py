"""The vocabulary of the mesh and the way on and off its log: the SDK of any service.

What lives here: every event and row as a frozen type, the Avro codec, signatures, `emit`, `read`;
connections to Kafka (`kafka`), schemas of topics (`schema`), checkpoints (`integrity`).
What does not: state (see `projections`) and effects (see `processors`).
Comes in: values of the types in `intents`, `decisions`, `facts`. Goes out: records on
`mesh.governance` in the wire format of `docs/reference/wire-format.md`.
Start reading with `intents.py`, top to bottom: it is the mesh's language.
"""
