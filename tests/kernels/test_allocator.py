"""`keep_memory`: a large block that is freed and asked for again is not cleared by the system a second time."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import torch
from gind.kernels.allocator import keep_memory
if "keep" in sys.argv: assert keep_memory() and keep_memory()
def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20): torch.ones(2**25)
before = faults()
for _ in range(10): torch.ones(2**25)
print(faults() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator")
def test_freed_memory_is_used_again() -> None:
    def faults(*words: str) -> int:
        done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert 10 * faults("keep") < faults()
