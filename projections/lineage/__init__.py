"""What reads and fills which topic or table, and who can read it in the end. Pure."""
