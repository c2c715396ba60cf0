"""What the enforcer is told: its options, where they come from, and its version. Read by every process."""
