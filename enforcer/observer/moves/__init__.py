"""Which running members are to be moved, window by window: what is looked for, when, how many, and what it came to."""
