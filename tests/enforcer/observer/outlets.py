"""Where a traffic loop under test sends what nobody asks for."""

from typing import Any

from enforcer.observer.traffic_loop import Outlets
from numakin.placement.state.occupancy import Occupancy


def _drop(_: Any) -> None: ...


NOWHERE = Outlets(kin=_drop, plan=_drop, moves=_drop, traffic=_drop, occupancy=Occupancy)
