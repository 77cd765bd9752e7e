"""The acceptance story, as a user tells it."""
