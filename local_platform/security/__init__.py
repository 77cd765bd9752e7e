"""Accounts, certificates, passwords and rights of the platform's own servers."""
