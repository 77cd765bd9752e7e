"""The local mesh on this machine, and the person at the keyboard."""
