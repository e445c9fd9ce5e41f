"""Where the time of an epoch goes: groups that add up, ranges with all inside, and pages with and without them."""

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from bench_cases import quick_report
from cli_cases import command
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.profiler import record_function

from gind.bench import BenchError, CaseRequest, Options, Report, read_report, tables
from gind.bench.epoch import GROUPS as EPOCHS
from gind.bench.epoch import epoch
from gind.bench.interleave import Contender, once
from gind.bench.profile import ELEMENTS, FEATURES, GATHER, GROUPS, MEASURE, OPTIMIZER, PRODUCTS, REST, STEPS, spent
from gind.bench.schema import Profile
from gind.bench.words import profile_rows


def used(run: Callable[[], object]) -> set[str]:
    """The groups in which a function spends time, beside Python."""

    def sequence(_: Any) -> Sequence[Tensor]:
        run()
        return ()

    groups = spent(Contender("a", sequence))["groups"]
    return {group for group in GROUPS[:-1] if groups[group]}


@pytest.mark.parametrize("shape", ["texas", "cora"])
def test_groups_of_a_published_epoch_add_up(shape: str) -> None:
    for contender in epoch(CaseRequest(shape, True, 4).open(), EPOCHS[MEASURE]):
        once(contender)
        found = spent(contender)
        assert found["name"] == contender.name
        assert tuple(found["groups"]) == GROUPS
        assert all(taken >= 0 for taken in found["groups"].values())
        assert sum(found["groups"].values()) == pytest.approx(found["seconds"], rel=1e-6)


def test_each_contender_has_its_own_groups() -> None:
    profile = quick_report()["cases"][0]["profile"]
    stored, ours = profile["before"]["groups"], profile["after"]["groups"]
    assert stored[STEPS] == 0 < ours[STEPS]
    for group in (FEATURES, PRODUCTS, ELEMENTS, OPTIMIZER):
        assert min(stored[group], ours[group]) > 0, group
    assert stored[GATHER] > ours[GATHER]


def test_operators_go_to_their_groups_and_unknown_ones_to_the_rest() -> None:
    x = torch.randn(8, 8)
    rows, two = torch.tensor([1, 1]), torch.randn(2, 8)
    known: list[tuple[str, Callable[[], object]]] = [
        (PRODUCTS, lambda: x @ x),
        (ELEMENTS, lambda: x.tanh()),
        (ELEMENTS, lambda: x.tanh_()),
        (GATHER, lambda: x.index_select(0, rows)),
        (GATHER, lambda: x.index_add(0, rows, two)),
    ]
    for group, run in known:
        assert used(run) - {REST} == {group}  # matmul, of the rest, calls mm
    assert used(lambda: torch.cumsum(x, 0)) == {REST}


def test_features_take_all_inside_and_their_gradient_with_them() -> None:
    x, weight, other = torch.randn(8, 5), torch.randn(5, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True)

    def run(last: bool) -> None:
        with record_function("gind::features"):
            hidden = x @ weight
        torch.autograd.backward(hidden @ other if last else hidden, torch.ones(8, 3))

    assert PRODUCTS not in used(lambda: run(False))
    assert {FEATURES, PRODUCTS} <= used(lambda: run(True))


@given(before=st.lists(st.floats(0, 1e3), min_size=1, max_size=4), after=st.lists(st.floats(0, 1e3), min_size=1))
def test_rows_have_milliseconds_and_shares(before: list[float], after: list[float]) -> None:
    def run(name: str, taken: list[float]) -> Any:
        return {"name": name, "seconds": sum(taken), "groups": {f"g{i}": part for i, part in enumerate(taken)}}

    profile: Profile = {"measure": "m", "before": run("b", before), "after": run("a", after)}
    titles, *rows, whole = profile_rows(profile)
    assert len({len(titles), len(whole), *map(len, rows)}) == 1
    assert len(rows) == sum(
        any(side[i : i + 1] != [0] * len(side[i : i + 1]) for side in (before, after))
        for i in range(max(len(before), len(after)))
    )
    for column, taken in ((1, before), (3, after)):
        cells = {row[0]: (row[column], row[column + 1]) for row in rows}
        for number, part in enumerate(taken):
            if part:
                assert cells[f"g{number}"] == (f"{1e3 * part:,.1f}", f"{part / sum(taken):.1%}")
        assert whole[column + 1] == ("100.0%" if sum(taken) else "-")


def without(report: Report) -> Any:
    """As reports were before there were profiles."""
    old: Any = copy.deepcopy(report)
    for case in old["cases"]:
        del case["profile"]
    return old


def test_a_report_without_profile_is_read_and_shown_as_before(tmp_path: Path) -> None:
    new, old = quick_report(), without(quick_report())
    path = tmp_path / "old.json"
    path.write_text(json.dumps(old))
    assert read_report(path) == old
    outcome = command(f"bench --from {path}")
    assert outcome.code == 0, outcome.stderr
    assert "before (edge-storing)" not in outcome.stdout
    added = [line for line in tables([new]).splitlines() if line not in tables([old]).splitlines()]
    assert added[0] == f"Where the {MEASURE} goes, before (edge-storing) and after (gind-published):"
    titles, *rows = profile_rows(new["cases"][0]["profile"])
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in added[1:]]
    assert cells == [titles, ["---", *["---:"] * 4], *rows]


def test_a_wrong_profile_is_refused(tmp_path: Path) -> None:
    report: Any = copy.deepcopy(quick_report())
    report["cases"][0]["profile"]["after"]["groups"]["rest"] = "much"
    path = tmp_path / "r.json"
    path.write_text(json.dumps(report))
    with pytest.raises(BenchError, match=r"profile.after.groups.rest is 'much'"):
        read_report(path)


def test_memory_is_of_what_was_asked_for() -> None:
    case = (CaseRequest("texas", True, 4),)
    assert Options(case).remembers("solve")
    assert not Options(case, memory=False).remembers("solve")
    some = Options(case, memory_of=(MEASURE,))
    assert some.remembers(MEASURE)
    assert not some.remembers("solve")


def test_one_measure_alone(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    outcome = command(f"bench --quick --threads 1 --hidden 4 --measure iteration --memory-of iteration --json {path}")
    assert outcome.code == 0, (outcome.stderr, outcome.error)
    (case,) = read_report(path)["cases"]
    assert [group["measure"] for group in case["groups"]] == ["iteration"]
    assert "profile" not in case
