"""What can go wrong on the NRI socket, by whose fault it is."""


class ProtocolError(Exception):
    """The NRI connection can't go on as it is."""


class PeerError(ProtocolError):
    """The runtime sent what no NRI runtime may send. The byte stream can't be trusted any more: close it."""


class UsageError(ProtocolError):
    """We asked for what NRI does not allow. Nothing was written, the connection is as it was."""


class RegistrationRefusedError(ProtocolError):
    """The runtime turned our registration down, and leaves the connection open with nothing coming: close it."""


class ConfigurationRefusedError(ProtocolError):
    """Our configure handler turned down what the runtime passed as configuration; the runtime was notified."""
