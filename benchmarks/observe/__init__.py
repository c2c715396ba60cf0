"""What observing costs: CPU of the observed, nanoseconds of each event, memory of the observer."""
