"""The format of the report stream, which both ends name when it begins: so that a difference of versions is known."""

from __future__ import annotations

REPORT_FORMAT = 2
"""Raised with what a fingerprint is made of (`numakin.placement.state.fingerprint`), and with the meaning of a field.
New fields need no new format: an end that does not know them passes them over. New kinds of messages do. 0: an end from
before formats were named.
"""
