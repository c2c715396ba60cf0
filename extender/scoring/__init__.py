"""How well a pod would do on each node: predictions by decide(), over arrays where that is the same, and strict
refusals.
"""
