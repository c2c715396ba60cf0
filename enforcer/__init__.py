"""The node's half: pins opted-in containers at their creation, observes traffic, and moves members when the graph says
so.

Two processes: `hook` answers the container runtime (`bypass` takes its place where the runtime has no NRI), `observer`
does all that may be slow. They share `local` (what they send each other), `settings`, and the packages outside of
this half; neither imports the other. `cli` is what people start.
"""

from numakin.wire.later import later

later("asyncio")  # for gRPC's, which is not used either: 1.3 MiB
later("inspect")  # Python 3.11's dataclasses asks for it where a class has no docstring: 0.7 MiB, 5 ms
