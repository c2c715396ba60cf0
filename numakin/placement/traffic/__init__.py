"""Who talks to whom: the graph that kin weights and plans come from, and the relays that pass on what they receive.

Imports `model`. Start with `graph`.
"""
