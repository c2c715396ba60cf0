"""Who a plugin is to the runtime."""

import re
from dataclasses import dataclass

from enforcer.nri.errors import UsageError

# fullmatch: "$" would let a newline through.
INDEX = re.compile(r"[0-9]{2}")
NAME = re.compile(r"[a-zA-Z0-9_.+-]+")


@dataclass(frozen=True, slots=True)
class Identity:
    """A plugin's index and name, as NRI allows them; str() is "NN-name", as runtimes log it.

    Checked here since the runtime's own check leaves the connection open with nothing coming, and since older
    runtimes take names that newer ones refuse. Plugins are called in the order of their indices, as strings.
    """

    index: str
    name: str

    def __post_init__(self) -> None:
        if not INDEX.fullmatch(self.index):
            raise UsageError(f"NRI plugin index {self.index!r}: must be two digits, 00 to 99")
        if not NAME.fullmatch(self.name):
            raise UsageError(
                f"NRI plugin name {self.name!r}: must be letters, digits, '_', '.', '+' or '-', at least one"
            )

    def __str__(self) -> str:
        return f"{self.index}-{self.name}"
