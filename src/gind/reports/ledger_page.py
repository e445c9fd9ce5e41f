"""The ledger in Markdown. The same reports give the same bytes."""

from collections.abc import Mapping, Sequence

from gind.experiments.items import WITHOUT_RUNS
from gind.reports.claims import claims
from gind.reports.counts import counts_table
from gind.reports.curves import CURVES
from gind.reports.ledger import Item
from gind.reports.ledger_ahead import ahead
from gind.reports.ledger_residuals import convergence
from gind.reports.ledger_rows import rows_table
from gind.reports.ledger_spread import paired, seeds
from gind.reports.ledger_summary import summary
from gind.reports.ledger_tables import curve_table, others, paper_table, splits, timing
from gind.reports.ledger_words import beware, curve_remarks, mismatches, missing
from gind.text import are, plural, table

__all__ = ["anchor", "item_page", "item_section", "results_page"]

_HOW_TO_READ = "How to read the tables"

_LEGEND = """\
- **paper**: what it prints. **published**: the published procedure, run here (`gind-published`). **certified**: the \
equilibrium, solved to its tolerance and with its exact gradient (`gind`), unless an item varies just that: steps of \
its gradient, or of its solver. **no graph**: features alone, an MLP (`mlp`).
- Numbers are means over the runs that are there, on test parts, in percent; ± is the sample standard deviation (over \
n - 1). Where some runs are missing, (n/N) says how many are there.
- Δ is the difference to the paper, in points, where no run is missing. An empty cell is one that the paper does not \
have, or that nobody asked for; what was asked for and has not run says "missing"."""

_READING = """\
- The weights of a run are those of the epoch that is best on its validation part, unless its row says otherwise: by \
accuracy, and by loss for the certified GIND on WebKB and CiteSeer and for the MLP on CiteSeer \
([decision 0019](decisions/0019-best-epoch-by-loss.md)).
- Residual and bound: ‖z - f(z)‖ / ‖f(z)‖, and a bound of the distance ‖z - z\\*‖ to the equilibrium where there is a \
proof. In a stack of layers each is measured for the input that it was given. The published procedure takes damped \
steps z ↦ (1 - α)z + αf(z), and what is measured is the change by one of them. With one layer ‖z - f(z)‖ is that over \
α, which is what stands here, in lengths of the damped step. With several layers the step is composed of theirs: there \
the change itself stands, with α beside it, and the smaller α, the less it shows.
- Reached: the runs whose test pass reached its tolerance, of all. Missed: the solves in training, of all runs \
together, that did not."""

_SETTINGS = """\
What to know about the settings:

- Those that a search found were chosen on validation parts. Splits divide the same nodes, so a node that validates in \
one is tested in another.
- Searches for the certified GIND had more trials than those for other systems, and most of these had none; some of \
what they found, such as a much better APPNP on Texas and Wisconsin, is not used here but stands with the \
[searched settings](searched.md). \
JKNet and EIGNN on Texas and Wisconsin and FDGNN on PTC_MR run here with what a search found; there is no other rule \
to this than which search came first.
- The rule by which a search chooses was changed once, after tests of `cornell-pre2022`, Wisconsin and CiteSeer had \
been seen ([decision 0010](decisions/0010-tuning.md)); so was, on CiteSeer, the rule for the best epoch.
- The last search on WebKB was begun because tests of earlier winners were below the paper."""


def results_page(items: Sequence[Item], figures: Mapping[str, str]) -> str:
    """All items on one page; `figures` are the places of images, by item."""
    rows = [
        [
            f"[{item.title}](#{anchor(item.title)})",
            f"`{item.name}`",
            _label(item),
            f"{item.done:,}",
            f"{item.total:,}",
            _hours(item),
        ]
        for item in items
    ]
    lines = [
        "# Every table and figure of the paper",
        "",
        "Written by `gind report` from the reports in `results/`, which a checkout has. `gind reproduce ITEM` runs "
        "what is missing.",
        "",
        _LEGEND,
        "",
        *summary(items),
        *claims(items),
        *table(["", "item", "where", "runs", "of", "hours"], rows, left=3),
        "",
        "Hours are of one core, on machines of different speed; runs that two items share count in both.",
        "",
        f"## {_HOW_TO_READ}",
        "",
        _READING,
        "- What is known about the gaps of the other systems, and the settings of all: [baselines](baselines.md). What "
        "the published procedure is: [published](published.md).",
        "",
        _SETTINGS,
        _made_with(items),
        "",
    ]
    for item in items:
        lines += item_section(item, figures)
    return "\n".join(lines)


def item_page(item: Item, figures: Mapping[str, str], narrow: bool = False) -> str:
    """One item on a page of its own, with how to read it where there are runs."""
    first, second, *rest = item_section(item, figures, narrow)
    if item.collection is None:
        return "\n".join([first[1:], second, *rest])
    return "\n".join([first[1:], second, _LEGEND, "", *rest, f"{_HOW_TO_READ}:", "", _READING, "", _SETTINGS, ""])


def item_section(item: Item, figures: Mapping[str, str], narrow: bool = False) -> list[str]:
    """Tables beside the paper, figure, residuals, splits, and what is far from the paper or missing.

    `narrow`: for a terminal, where a column for each split would be cut off.
    """
    if item.collection is None:
        there = "There is nothing to run."
    else:
        there = f"`gind reproduce {item.name}`: {item.done:,} of {plural(item.total, 'run')} {are(item.done)} there."
    lines = [f"## {item.title}", "", f"{_label(item)}. {there}", ""]
    if item.name in figures:
        lines += [f"![{item.title}]({figures[item.name]})", ""]
    lines += [item.remarks.whole, ""] if item.remarks.whole else []
    if item.name in WITHOUT_RUNS:
        return lines + [line for printed in item.tables for line in counts_table(printed)]
    for number, printed in enumerate(item.tables):
        lines += paper_table(item, printed) if printed.datasets else timing(item, printed)
        if printed.datasets and number == 0:
            lines += [*paired(item, printed), *seeds(item), *others(item, printed), *ahead(item, printed)]
    if item.name in CURVES and item.places:
        lines += curve_table(item, CURVES[item.name]) + curve_remarks(item)
    elif not item.tables and item.ours:
        lines += rows_table(item)
    return lines + beware(item) + mismatches(item) + convergence(item) + splits(item, narrow) + missing(item)


def _made_with(items: Sequence[Item]) -> str:
    commits = {path: made for item in items if item.collection for path, made in item.collection.commits.items()}
    named = sum(bool(made) for made in commits.values())
    return (
        "- A run is kept until the keys of its sheet change, and is not repeated when defaults or the code do: "
        f"{named:,} of {plural(len(commits), 'report')} name the commit that made them, the others are older. Where "
        "the code changed since, the same seed may draw other numbers, and a mean of ten splits may be another."
    )


def _hours(item: Item) -> str:
    """Of one core, that the runs took which are there; those of other items among them are counted again."""
    return f"{item.collection.seconds / 3600:.1f}" if item.collection else ""


def _label(item: Item) -> str:
    return f"{item.label} of the paper" if item.label else "Not in the paper"


def anchor(title: str) -> str:
    """Where a section begins, as viewers of Markdown name it."""
    return "".join(c for c in title.lower() if c.isalnum() or c in " -_").replace(" ", "-")
