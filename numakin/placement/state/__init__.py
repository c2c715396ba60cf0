"""Who has what on one machine: reservations and allocations, the occupancy that holds them, its sums, and the shared
pools.

Imports `model` and `optin`. Start with `allocations`, then `occupancy`.
"""
