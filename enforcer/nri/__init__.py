"""The runtime's side of the enforcer: an NRI plugin session, for NRI 0.6.1 to 0.12.

Read it from the wire up: `mux` (frames), `ttrpc` (messages), `events` (which calls and events there are, and which
a runtime knows), `handlers` (what the agent implements), `dispatch` (a call to its handler and back), `session`
(bytes in, bytes out), and the shells `socket_loop` (file descriptors and timers) and `plugin` (dial, register,
reconnect). Everything up to `session` is free of I/O and clocks.
"""
