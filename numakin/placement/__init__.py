"""Where a pod's CPUs and memory should be: pure functions over immutable values.

Read in this order:

    model     sets of ids, the machine, what a pod needs, the operator's settings, live figures
    optin     what a pod may ask for, and the annotations that say it
    state     reservations and allocations, the occupancy that holds them, its index (sums, fingerprint), the pools
    decide    `decide`, the one function that both halves call: a request's survey, the sets of NUMA nodes to weigh, the
              choice among them, the CPUs and memory that it comes to; `explain` for people, `relocation` for moves
    traffic   who talks to whom, the peers of a workload, relays
    plan      where each workload should live, how many replicas are expected, which running members to move

Each folder's docstring says where to start and what it imports.

Nothing here does I/O, reads a clock, starts a thread or imports anything but the standard library.
"""
