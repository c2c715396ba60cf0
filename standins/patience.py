"""How long tests wait for what must come."""

PATIENCE_S = 180.0
"""Only what has failed takes so long: other work on the machine may slow a process that starts in 1 s twenty times."""
