"""Values between databases and topics: what a connector brings is right, or it is refused.

Tests of connectors' lives and rights are in `tests/integration/test_cli_connect.py`.
"""
