"""Where a pod's CPUs and memory should be: pure functions over immutable values.

Read in this order: `cpuset` (sets of ids), `topology` (the machine), `optin` (what a pod asks for by annotation),
`demand` (what it needs), `occupancy` (who holds what), `decide` (the one function that both halves call).

Nothing here does I/O, reads a clock, starts a thread or imports anything but the standard library.
"""
