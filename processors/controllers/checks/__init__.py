"""Checks of the world for intents that wait for one."""
