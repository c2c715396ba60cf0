"""Where a container goes: decide(), and what it weighs.

Imports `model`, `optin` and `state`. Start with `decide`: survey (what the request finds) -> candidates -> choice ->
decision. The numbers of a score are in `scoring`.
"""
