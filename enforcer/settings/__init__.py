"""The enforcer's configuration: its options, where they come from, and its version. Read by every process."""
