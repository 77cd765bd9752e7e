"""Kafka clusters: their administration, and the rights and logins that the mesh sets."""
