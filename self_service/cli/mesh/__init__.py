"""The mesh that a command works at: its home, logins, image, and how an intent is submitted."""
