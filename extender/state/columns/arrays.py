"""The kinds of arrays that nodes' numbers are in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.intp]
Objects = npt.NDArray[np.object_]
