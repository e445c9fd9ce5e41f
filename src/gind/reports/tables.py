"""The page of a sheet in Markdown: beside the paper, convergence, settings. The same reports give the same bytes."""

from collections import Counter
from collections.abc import Sequence

from gind.experiments.protocol import CHOICES
from gind.experiments.sheet import NESTED
from gind.reports.collect import Collection, Row
from gind.reports.compare import FAR, Comparison, Entry, Line, compare
from gind.reports.numbers import duration, scientific, spread
from gind.reports.paper import Paper
from gind.reports.remarks import Remarks
from gind.reports.settings import ModelSettings, model_settings
from gind.text import are, have, plural, table

__all__ = ["comparison_section", "convergence_section", "settings_section", "sheet_page"]

MARK = "▼"


def sheet_page(collection: Collection, paper: Paper, remarks: Remarks) -> str:
    """The whole page."""
    comparisons = compare(collection, paper)
    sections = [_head(collection, comparisons)]
    sections += [comparison_section(comparison, remarks) for comparison in comparisons]
    sections += [convergence_section(collection.rows), settings_section(collection.rows), _made_with(collection)]
    return "\n".join(line for section in sections for line in section)


def _head(collection: Collection, comparisons: Sequence[Comparison]) -> list[str]:
    """What is there and how to read it."""
    sheet = collection.sheet
    missing = len(collection.missing)
    there = len(sheet.cells) - missing
    empty = len(collection.places) - len(collection.rows)
    compared = [line for one in comparisons for entry in one.entries for line in entry.lines if line.row and line.paper]
    full = [line for line in compared if line.difference is not None]
    below = sum(line.below for line in full)
    above = sum((line.difference or 0) > FAR for line in full)
    stranger = f" Left out: {plural(collection.strangers, 'report')} that the sheet does not name."
    return [
        f"# {sheet.title}",
        "",
        f"Written by `gind report` from the reports of the sheet `{sheet.name}`: {there:,} of its "
        f"{plural(len(sheet.cells), 'run')} {are(there)} there, {missing:,} {are(missing)} missing, and {empty:,} of "
        f"its {plural(len(collection.places), 'cell')} (a system on a dataset) {have(empty)} no run yet."
        + (stranger if collection.strangers else ""),
        "",
        f"The paper has {plural(len(compared), 'cell')} of these too. Of the {len(full):,} that have all "
        f"their runs here, {below:,} {are(below)} more than {FAR:g} points below it, {above:,} more than {FAR:g} "
        f"points above, {len(full) - below - above:,} within.",
        "",
        "- Every number is the mean over the runs that are there, on test parts, in percent; ± is the sample standard "
        "deviation (over n - 1).",
        "- `splits` counts the runs that are there of those that the sheet asks for.",
        "- The weights of a run are those that were best on its validation part; `validation` is their metric there.",
        "- Settings from a search (experiments/searches) were chosen on validation parts of several splits; the splits "
        "divide the same nodes, so a node that validates in one is tested in another.",
        f"- {MARK} marks a cell more than {FAR:g} points below the paper; none where runs are missing.",
        "- \\* marks what the authors of the paper ran themselves; the rest of its numbers are GIND's own or quoted.",
        "- `majority class` always predicts the most frequent class of the training part.",
        "- `s per run` is the median; other runs were on the machine at the same time.",
        *_protocols(collection.rows),
        "",
    ]


def _protocols(rows: Sequence[Row]) -> list[str]:
    said = {"paper": "; no part validates", NESTED: "; time is that of what was chosen"}
    found = {protocol: dict.fromkeys(row.model for row in rows if row.protocol == protocol) for protocol in said}
    return [
        f"- {', '.join(f'`{name}`' for name in names)}: {CHOICES[protocol]}{said[protocol]}."
        for protocol, names in found.items()
        if names
    ]


def comparison_section(comparison: Comparison, remarks: Remarks) -> list[str]:
    """A table of the paper, dataset by dataset."""
    lines = [f"## {comparison.title}", ""]
    if comparison.table is not None and comparison.table.note:
        lines += [comparison.table.note, ""]
    for entry in comparison.entries:
        lines += [f"### {entry.title}", "", *_entry(entry), ""]
        below = _below(entry, remarks)
        lines += [*below, ""] if below else []
    return lines


def _entry(entry: Entry) -> list[str]:
    titles = ["system", "here", "splits", "paper", "difference", "validation", "s per run"]
    rows = [_cells(line) for line in entry.lines]
    if entry.beside:
        titles += [f"here, {entry.beside}", "splits"]
        for line, row in zip(entry.lines, rows, strict=True):
            row += ["", ""] if line.beside is None else [spread(line.beside.test), _splits(line.beside)]
    shares = ["" if share is None else f"{share:.2f}" for share in (entry.majority, entry.beside_majority)]
    if any(shares):
        rows.append(["majority class", shares[0], "", "", "", "", "", *([shares[1], ""] if entry.beside else [])])
    notes = [
        f"- {row.model} on {row.dataset}: {note}."
        for line in entry.lines
        for row in (line.row, line.beside)
        if row is not None
        for note in row.notes
    ]
    return table(titles, rows) + (["", "Beware:", "", *notes] if notes else [])


def _cells(line: Line) -> list[str]:
    row, paper = line.row, "" if line.paper is None else str(line.paper).replace("*", "\\*")
    if row is None:
        return [line.model, "", f"0/{line.expected}" if line.expected else "", paper, "", "", ""]
    difference = "" if line.difference is None else f"{line.difference:+.2f}" + f" {MARK}" * line.below
    seconds = f"{row.seconds_per_run:.1f}"
    validation = "" if row.validation is None else spread(row.validation)
    return [line.model, spread(row.test), _splits(row), paper, difference, validation, seconds]


def _splits(row: Row) -> str:
    """9/10, and how many of them are different splits where seeds repeat them."""
    return f"{row.runs}/{row.expected}" + ("" if row.runs == row.splits else f" ({plural(row.splits, 'split')})")


def _below(entry: Entry, remarks: Remarks) -> list[str]:
    """The marked cells, with what is known about them."""
    found = [line for line in entry.lines if line.below]
    if not found:
        return []
    lines = [f"More than {FAR:g} points below the paper:", ""]
    for line in found:
        text = remarks.find(line.model, line.dataset)
        lines.append(f"- {line.model} ({line.difference:+.2f})" + (f": {text}" if text else ""))
    return lines


def convergence_section(rows: Sequence[Row]) -> list[str]:
    """Whether the implicit systems reached their equilibria."""
    titles = ["system", "dataset", "tolerance", "worst residual", "reached", "largest bound", "proven", "unsolved"]
    order = list(dict.fromkeys(row.model for row in rows))
    found = [(row, row.convergence) for row in rows if row.convergence is not None]
    found.sort(key=lambda pair: order.index(pair[0].model))
    lines = [
        [
            row.model,
            row.dataset,
            scientific(solved.tolerance),
            scientific(solved.residual),
            f"{solved.reached}/{solved.runs}",
            scientific(solved.bound),
            f"{solved.proven}/{solved.runs}",
            f"{solved.unsolved:,}",
        ]
        for row, solved in found
    ]
    return [
        "## Convergence",
        "",
        "Of every system that solves for an equilibrium, the worst over its runs, in the pass that predicts the test "
        "part. The residual is ‖z - f(z)‖ / ‖f(z)‖; `reached` counts the runs where it is within the tolerance. The "
        "bound is of the distance ‖z - z\\*‖ to the exact equilibrium; `proven` counts the runs that have one, the "
        "others have a residual only. `unsolved` are the solves during training, of all runs, that missed their "
        "tolerance.",
        "",
        *(table(titles, lines, left=2) if lines else ["No system of this sheet has one yet."]),
        "",
    ]


def settings_section(rows: Sequence[Row]) -> list[str]:
    """What ran, system by system."""
    lines = [
        "## Settings",
        "",
        "As the reports have them. Keys that are off (`none`) or that nothing reads are left out; `gind keys MODEL` "
        "lists all.",
        "",
    ]
    for model in dict.fromkeys(row.model for row in rows):
        own = [row for row in rows if row.model == model]
        if any(row.chosen for row in own):  # each split has those of one of its candidates
            lines += [f"### {model}", "", *(f"- {row.dataset}: as {row.chosen}" for row in own if row.chosen), ""]
        else:
            lines += _settings(model_settings(model, own))
    return lines


def _settings(settings: ModelSettings) -> list[str]:
    shared = " · ".join(f"{key} {value}" for key, value in settings.shared.items())
    lines = [f"### {settings.model}", "", f"On every dataset: {shared or 'nothing'}.", ""]
    if not settings.keys:
        return lines
    rows = [[name, *(values.get(key, "") for key in settings.keys)] for name, values in settings.by_dataset.items()]
    return [*lines, *table(["dataset", *settings.keys], rows), ""]


def _made_with(collection: Collection) -> list[str]:
    """Versions and time."""
    seconds = collection.seconds
    lines = ["## Made with", ""]
    by_version: dict[tuple[tuple[str, str], ...], Counter[str]] = {}
    for versions, count in collection.versions:
        known = tuple((name, version) for name, version in versions.items() if name != "commit")
        by_version.setdefault(known, Counter())[versions.get("commit", "")] += count
    for known, commits in by_version.items():
        names = " · ".join(f"{name} {version}" for name, version in known)
        named = [f"{count:,} of {commit}" for commit, count in sorted(commits.items()) if commit]
        lines.append(
            f"- {plural(commits.total(), 'run')}: {names}" + (f"; commits: {', '.join(named)}" if named else "")
        )
    there = len(collection.sheet.cells) - len(collection.missing)
    return [
        *lines,
        "",
        "A run is kept until its settings change. Where the code changed after it, the same seed may draw other "
        "numbers.",
        "",
        f"All epochs of all {plural(there, 'run')}, validation included, took {duration(seconds)} together.",
        "",
    ]
