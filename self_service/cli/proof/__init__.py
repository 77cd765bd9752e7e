"""Proofs that a record stands on the log: searched, written, read and checked. Pure."""
