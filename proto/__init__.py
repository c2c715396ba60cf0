"""The contracts: what the halves, the enforcer's processes, and the runtime and the kubelet send each other.

`*.proto` with the code generated from them (`make proto`); `convert` between messages and placement's values; `bounds`
that both ends of the report stream keep; `certificates` of both ends.
"""
