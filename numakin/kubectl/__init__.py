"""`kubectl numakin`: what people ask of a cluster that runs numakin, from their own terminal, with their own rights.

`main` dispatches to one module of `commands` each; `reach` has the ways to the extender, `apiserver` the way to the API
server, `output` the formats. No other room imports it.
"""
