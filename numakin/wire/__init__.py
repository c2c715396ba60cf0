"""The contracts: what the halves, the enforcer's processes, and the runtime and the kubelet send each other.

`*.proto` with the code generated from them (`make proto`); `convert` between messages and placement's values; `bounds`
that both ends of the report stream keep; `certificates` of both ends.
"""

from numakin.wire.later import later

later("google.protobuf.internal.python_message")  # protobuf in Python, where there is no protobuf in C: 1 MiB, 10 ms
later("calendar")  # for times in protobuf; it brings locales with it: 0.3 MiB
later("grpc.aio")  # 1 MiB
