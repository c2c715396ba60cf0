"""The certificates of the gRPC port, asked for at each connection."""

from __future__ import annotations

import grpc

from numakin.wire.certificates import Loaded, Renewed


def server_credentials(tls: Renewed) -> grpc.ServerCredentials:
    """The certificates are asked for at each connection; those that stream already are left alone."""
    shown = tls.current()

    def newer() -> grpc.ServerCertificateConfiguration | None:
        nonlocal shown
        now = tls.current()
        if now is shown:
            return None
        shown = now
        return _configuration(now)

    return grpc.dynamic_ssl_server_credentials(
        _configuration(shown),
        newer,  # type: ignore[arg-type]  # None, for no change, is part of grpc's contract
        require_client_authentication=bool(shown.ca),
    )


def _configuration(loaded: Loaded) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(loaded.key, loaded.cert)], loaded.ca or None)
