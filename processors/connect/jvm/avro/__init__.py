"""Avro beside the converter, changed by `PatchAvro`: `StrictTexts` refuses bytes that are no text.

By `PatchDecoder`, which Spark's servers have as well, `StrictNumbers` refuses numbers that their
type has not.
"""
