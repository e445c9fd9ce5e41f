"""A small measurement that the tests share."""

import functools

from gind.bench import CaseRequest, Options, Report, bench
from gind.bench.roofline import SMALL
from gind.bench.scaling import QUICK as RANGES

__all__ = ["QUICK", "quick_report"]

QUICK = Options((CaseRequest("texas", True, 16),), rounds=2, threads=1, memory=False, sizes=SMALL, ranges=RANGES)


@functools.cache
def quick_report() -> Report:
    """Measured once; not to be changed."""
    return bench(QUICK)
