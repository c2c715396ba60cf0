"""Where a pod's CPUs and memory should be: pure functions over immutable values.

Read in this order:

    values      `cpuset` (sets of ids), `topology` (the machine), `rules` (what the operator sets), `wishes` (what a
                pod may ask for) with `optin` and `katalyst` (its annotations), `demand` (what it needs)
    state       `reservation` (reservations and allocations), `tally` (their sums), `occupancy` (all of them on one
    machine) a decision  `request` (what is asked), `survey` (what the request finds) as `room` (what a set of NUMA
    nodes is
                worth to it, by `kinship`, `memory` and `scoring`), `candidates` (which sets to weigh), `choice` (which
                it is, with `hints` and `policies` of the topology manager), `own` and `pools` (which CPUs), and
                `decide`, the one function that both halves call, with `decision`, its answer; `explain` tells the
                whole story
    ahead       `traffic` (who talks to whom), `plan` (where each workload should live), `planning` (how that is found)

Nothing here does I/O, reads a clock, starts a thread or imports anything but the standard library.
"""
