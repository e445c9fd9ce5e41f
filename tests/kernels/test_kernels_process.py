"""What needs a process of its own: no numba, no cache, other thread pools, forks, memory."""

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from graphs import some_raw, values

import gind.kernels
from gind.kernels import reference

PATH = [p for p in sys.path if p]

REPORT = """
import json, sys, warnings
{prepare}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import gind.kernels
    from gind.kernels import flux, implementation
import torch
from graphs import some_raw, values
graph = some_raw()
y = values(0, graph.num_nodes, 5, dtype=torch.float64).requires_grad_()
with warnings.catch_warnings():
    warnings.simplefilter("error")
    out, sums = flux(y, *graph.edges, graph.batch, graph.num_graphs, moments=True)
    (out.square().sum() + sums.sum()).backward()
print(json.dumps({{
    "warnings": [[w.category.__name__, str(w.message)] for w in caught if "gind" in str(w.message)],
    "implementation": implementation(), "file": gind.kernels.__file__,
    "out": out.tolist(), "sums": sums.tolist(), "grad": y.grad.tolist(),
}}))
"""


def run(script: str, path: list[str], **environment: str) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path), **environment}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def sources(directory: Path) -> list[str]:
    """A copy of the kernels where `__pycache__` is a file: nothing can be kept beside the code, not even by root."""
    kernels = directory / "gind" / "kernels"
    shutil.copytree(Path(gind.kernels.__file__).parent, kernels, ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
    (directory / "gind" / "__init__.py").write_text('"""A part of gind."""\n')
    for name in ("cache.py", "errors.py", "files.py"):
        shutil.copy(Path(gind.kernels.__file__).parents[1] / name, directory / "gind")
    (kernels / "__pycache__").write_text("in the way")
    return [str(directory), *PATH]


@pytest.mark.parametrize(
    ("cause", "prepare", "reason"),
    [
        ("no numba", "sys.modules['numba'] = None", "import of numba"),
        ("no cache", "", "cache"),
        ("no compiler", "", "NUMBA_DISABLE_JIT"),
    ],
)
def test_the_reference_takes_over_with_one_warning(cause: str, prepare: str, reason: str, tmp_path: Path) -> None:
    path = PATH
    environment = {"GIND_NATIVE": "0"}
    if cause == "no cache":
        path = sources(tmp_path)
        (tmp_path / "file").write_text("not a directory")
        environment |= dict.fromkeys(("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"), str(tmp_path / "file" / "x"))
    elif cause == "no compiler":
        environment |= {"NUMBA_DISABLE_JIT": "1"}
    report = json.loads(run(REPORT.format(prepare=prepare), path, **environment))
    assert Path(report["file"]).is_relative_to(tmp_path) == (cause == "no cache")
    assert [category for category, _ in report["warnings"]] == ["RuntimeWarning"]
    message = report["warnings"][0][1]
    assert reason in message
    assert report["implementation"].startswith("reference (")
    assert report["implementation"][len("reference (") : -1] in message

    graph = some_raw()
    y = values(0, graph.num_nodes, 5, dtype=torch.float64).requires_grad_()
    out, sums = reference.flux(y, graph.plain, graph.batch, graph.num_graphs, "tanh", True)
    (grad,) = torch.autograd.grad(out.square().sum() + sums.sum(), y)
    for name, expected in (("out", out), ("sums", sums), ("grad", grad)):
        torch.testing.assert_close(torch.tensor(report[name], dtype=torch.float64), expected)


MEMORY = """
import resource, torch
torch.set_num_threads(2)
from gind.kernels import flux, flux_jvp, flux_secant, implementation
assert implementation().startswith("gind.kernels.c")

def step(n, m, h):
    generator = torch.Generator().manual_seed(0)
    tail = torch.randint(0, n, (m,), generator=generator).sort().values
    head = torch.randint(0, n, (m,), generator=generator)
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), torch.bincount(tail, minlength=n).cumsum(0)])
    edges = tail, head, ptr, torch.rand(m)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    y, t = (torch.randn(n, h, requires_grad=True) for _ in range(2))
    out, sums = flux(y, *edges, torch.zeros(n, dtype=torch.long), 1, "tanh", True)
    loss = out.square().sum() + sums.sum() + flux_jvp(y, t, *edges).sum() + flux_secant(y.detach(), t, *edges).sum()
    loss.backward()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

step(10, 5000, 64)  # compile and start threads
print(step(1000, 800_000, 64))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in other units elsewhere")
def test_no_edge_tensor_is_stored() -> None:
    """Forward, moments, products and their gradients, with 800 edges per node."""
    edge_tensor = 800_000 * 64 * 4 // 1024  # kB; one such tensor is 205 MB
    used = int(run(MEMORY, PATH))
    assert used < edge_tensor / 4, f"{used} kB more than before, an edge tensor has {edge_tensor}"


ONE_EDGE = """
import torch
from gind.kernels import flux_jvp
edge = torch.tensor([0]), torch.tensor([1]), torch.tensor([0, 1, 1]), torch.empty(0)
result = flux_jvp(torch.zeros(2, 1), torch.tensor([[0.0], [1.0]]), *edge, "identity")[1].item()
"""


def test_a_change_of_the_scalar_functions_reaches_the_kernels(tmp_path: Path) -> None:
    """numba keeps compiled kernels by the text of their own file: scalar.py must be part of the key."""
    assert float(run(ONE_EDGE + "print(result)", PATH, GIND_NATIVE="0")) == 1
    path = sources(tmp_path)
    kernels = tmp_path / "gind" / "kernels"
    (kernels / "__pycache__").unlink()
    shutil.copytree(Path(gind.kernels.__file__).parent / "__pycache__", kernels / "__pycache__")
    assert list((kernels / "__pycache__").glob("*.nbi")), "no compiled code to be mistaken for the new one"
    with (kernels / "scalar.py").open("a") as scalar:
        scalar.write("""
@njit(inline="always", fastmath=FASTMATH)
def slope(s, linear):
    return f32(3) + (s - s)
""")
    assert float(run(ONE_EDGE + "print(result)", path, GIND_NATIVE="0")) == 3


FIRST_CALLS_AT_ONCE = """
import threading, numba, torch
from gind.kernels import flux
from graphs import large_raw, values
graph, results = large_raw(), []
y = values(0, graph.num_nodes, 40, dtype=torch.float64)
barrier = threading.Barrier(8)
def call():
    torch.set_num_threads(2)
    barrier.wait()
    for _ in range(20):
        results.append(flux(y, *graph.edges, graph.batch, graph.num_graphs)[0])
threads = [threading.Thread(target=call) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(results) == 160 and all(torch.equal(r, results[0]) for r in results)
print(numba.threading_layer())
"""


def test_the_first_calls_may_come_at_once() -> None:
    """numba's workqueue, the pool of machines without OpenMP and TBB, aborts the process on concurrent use."""
    assert run(FIRST_CALLS_AT_ONCE, PATH, NUMBA_THREADING_LAYER="workqueue", GIND_NATIVE="0").strip() == "workqueue"


FORK = """
import multiprocessing, torch
torch.set_num_threads(2)
from gind.kernels import flux
from graphs import large_raw, values
graph = large_raw()
y = values(0, graph.num_nodes, 40, dtype=torch.float64)
def call(): return flux(y, *graph.edges, graph.batch, graph.num_graphs)[0]
def child(queue): queue.put(call()[0].tolist())
expected = call()
context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
process = context.Process(target=child, args=(queue,))
process.start()
process.join(30)
process.kill()
assert process.exitcode == 0, f"the worker ended with {process.exitcode}"
torch.testing.assert_close(torch.tensor(queue.get(), dtype=torch.float64), expected[0])
"""


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork")
@pytest.mark.parametrize("native", ["1", "0"], ids=["compiled", "numba"])
def test_a_forked_worker_can_compute(native: str) -> None:
    """A DataLoader with workers forks a process whose parent's threads are already running."""
    run(FORK, PATH, GIND_NATIVE=native)
