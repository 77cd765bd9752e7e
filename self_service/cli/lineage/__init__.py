"""Where data comes from and where it goes: topics, columns, and a picture of both."""
