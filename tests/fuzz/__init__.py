"""Bytes that others send, made worse: every parser of numakin under mutated input.

A target (`targets/`) takes any bytes. It raises when the parser does what it must not: an exception that is not one of
its documented ones, or a promise broken. `test_fuzz.py` runs each on its corpus and a fixed number of mutations of it;
`python -m tests.fuzz` (make fuzz) runs each with coverage, by atheris, for as long as is asked.
"""
