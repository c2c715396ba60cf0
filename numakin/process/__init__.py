"""What a long-running process of either program is made of. The standard library alone.

`supervisor` starts processes again, `forked` is such a process and `title` what `ps` shows for it, `signals` and
`pulse` are how they reach each other, `lock` keeps a second one away; `loop` is an event loop, `threads` are threads
that outlive exceptions; `log` writes events, `files` reads only regular files, `ports` finds a free one,
`options` are read by one way, `durations` are counted for histograms, `version` is that of both programs.
"""
