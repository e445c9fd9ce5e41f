"""Parts of numba whose types are missing or say something else than what is true at run time."""

from collections.abc import Callable
from typing import Any

import numba
from numba import extending

__all__ = ["config", "intrinsic"]

# called without the first argument of the definition, the typing context
intrinsic: Callable[[Callable[..., Any]], Callable[..., Any]] = extending.intrinsic
# numba fills it when it is imported
config: Any = numba.config
