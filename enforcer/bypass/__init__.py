"""Placing containers where the runtime has no NRI: it is followed over CRI, and cgroups are written a moment after the
start.

The `process` takes the hook's place and uses its agent; `polling` and `changes` say what happened, `pins` carry it out.
"""
