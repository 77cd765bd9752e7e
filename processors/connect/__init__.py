"""Kafka Connect: its REST API, the secrets that it resolves, and whether a config is sound.

What a connector is to be, the log says; the controller of connectors makes it so. What runs in
Connect itself, and what of its classes is changed, is in `jvm`.
"""
