"""What becomes of an intent: undecided, judged, accepted, and what follows from it. Pure."""
