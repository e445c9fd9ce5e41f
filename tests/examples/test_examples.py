"""Every example runs."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
ARGUMENTS = {"solvers.py": ["--norms", "0.9"], "convergence.py": ["--out"]}


@pytest.mark.parametrize("script", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_example_runs(script: str, tmp_path: Path) -> None:
    arguments = ARGUMENTS.get(script, [])
    if arguments == ["--out"]:
        arguments = ["--out", str(tmp_path / "figure.png")]
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    if "--out" in arguments:
        assert (tmp_path / "figure.png").stat().st_size > 10_000
    else:
        assert result.stdout.strip()
