"""The C loops are built where that is possible and safe; everywhere else numba serves, and says why."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, warnings
warnings.simplefilter("error")
from gind.kernels import flux, implementation, why_not
import torch
edge = torch.tensor([0]), torch.tensor([1]), torch.tensor([0, 1, 1]), torch.empty(0)
out, _ = flux(torch.tensor([[0.0], [0.5]]), *edge, torch.empty(0, dtype=torch.long))
print(json.dumps([implementation(), why_not(), out[1].item()]))
"""


def run(**environment: str) -> tuple[str, dict[str, str], float]:
    env = {k: v for k, v in os.environ.items() if k not in ("CC", "GIND_NATIVE", "GIND_CACHE")} | environment
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    served, reasons, value = json.loads(done.stdout)
    assert abs(value - 0.46211715726) < 1e-6
    return served, reasons, value


def compiler(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o700)
    return str(path)


@pytest.mark.skipif(sys.platform == "win32", reason="the C loops are not built on Windows")
def test_built_once_and_kept(tmp_path: Path) -> None:
    log = tmp_path / "calls"
    cc = compiler(tmp_path / "cc", f'echo "$@" >> {log}\nexec cc "$@"')
    cache = tmp_path / "cache"
    for _ in range(2):
        assert run(CC=cc, GIND_CACHE=str(cache))[:2] == ("gind.kernels.compiled", {})
    assert len(log.read_text().splitlines()) == 1
    assert [path.suffix for path in cache.iterdir()] == [".so"]
    assert cache.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"GIND_NATIVE": "0"}, "GIND_NATIVE=0"),
        ({"PATH": "/nowhere"}, "no C compiler"),
        ({"CC": "/nowhere/cc"}, "could not be built"),
        ({"CC": "false"}, "could not be built"),
    ],
    ids=["off", "no compiler", "absent compiler", "failing compiler"],
)
def test_numba_takes_over(environment: dict[str, str], reason: str, tmp_path: Path) -> None:
    served, reasons, _ = run(**{"GIND_CACHE": str(tmp_path / "cache"), **environment})
    assert served == "gind.kernels.cpu"
    assert reason in reasons["gind.kernels.compiled"]
    assert list((tmp_path / "cache").glob("*")) == []


def test_nothing_is_loaded_from_where_others_may_write(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    served, reasons, _ = run(GIND_CACHE=str(cache))
    assert served == "gind.kernels.cpu"
    assert "others may write" in reasons["gind.kernels.compiled"]


def test_a_cache_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    served, reasons, _ = run(GIND_CACHE=str(tmp_path / "file" / "cache"))
    assert served == "gind.kernels.cpu"
    assert "GIND_CACHE" in reasons["gind.kernels.compiled"]


def test_a_broken_file_in_the_cache_is_built_again(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    run(GIND_CACHE=str(cache))
    (built,) = cache.iterdir()
    built.write_bytes(b"not a library")
    assert run(GIND_CACHE=str(cache))[:2] == ("gind.kernels.compiled", {})
