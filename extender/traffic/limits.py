"""Bounds of what is expected of workloads before traffic shows it. What is over one says nothing; it is logged by name,
and counted in `numakin_extender_expected_left_out{limit}`.
"""

from __future__ import annotations

WORKLOADS_SELECTED = 8
"""Workloads behind one Service, or of one selector of a NetworkPolicy; one that selects more does not show which are
meant, and says nothing.
"""

WORKLOADS_SEARCHED = 100
"""Workloads of a namespace that have the rarest of the labels that a selector asks for. A selector with more counts as
one that selects too many, so that no tenant's selectors take long.
"""

EXPECTED_EDGES = 20_000
"""Expected pairs of workloads; over that those that weigh least are left out."""

POLICIES_OF_NAMESPACE = 100
"""NetworkPolicies of one namespace; the last by name are left out."""

PEERS_OF_POLICY = 32
"""Peers in the rules of one NetworkPolicy; further ones are left out."""

TERMS_OF_SELECTOR = 32
"""Labels, expressions and values of one selector; one with more selects nothing here."""
