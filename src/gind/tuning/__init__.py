"""Settings chosen on validation: a search of ranges in a TOML file, resumable, in parallel processes."""

from gind.tuning.choose import Tried
from gind.tuning.search import Search, read_search
from gind.tuning.tune import Tuning, tune

__all__ = ["Search", "Tried", "Tuning", "read_search", "tune"]
