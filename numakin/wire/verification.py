"""How certificates of others are checked: as kubectl, curl and every Go program check them.

The chain, the names and the dates hold. Python 3.13 also made OpenSSL's VERIFY_X509_STRICT a default, which refuses an
authority whose certificate names no use of its key, or a certificate that names no key of its authority: clusters' own
are often made so (EKS: kubernetes-client/python#2394).
"""

from __future__ import annotations

import ssl


def verifying(ca: str = "") -> ssl.SSLContext:
    """For a client. ca: a PEM file with the authorities that are believed; empty: the system's. OSError."""
    return unstrict(ssl.create_default_context(cafile=ca or None))


def unstrict(context: ssl.SSLContext) -> ssl.SSLContext:
    """The same context, made to check so."""
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
