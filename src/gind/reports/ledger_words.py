"""What the ledger says in words: which cells are far from the paper, what is known about it, which runs are missing."""

import contextlib
import math
from collections.abc import Container, Iterable, Iterator, Sequence

from gind.errors import UserError
from gind.experiments.protocol import CHOICES, LAST
from gind.experiments.setup import sample_model
from gind.experiments.sheet import NESTED, Cell
from gind.experiments.spec import keys_by_section
from gind.reports.collect import Row
from gind.reports.compare import FAR
from gind.reports.ledger import CERTIFIED, Entry, Item, Place
from gind.text import plural
from gind.train import unread_options

__all__ = ["SIDES", "beware", "curve_remarks", "far", "mismatches", "missing", "ranges", "side"]

SIDES = ("published", "certified")


def side(place: Place) -> str:
    """What the ledger calls a profile of GIND, with its variant."""
    name = SIDES[place.model == CERTIFIED]
    if place.protocol != "honest":
        return f"{name}, {CHOICES[place.protocol]}"
    return f"{name}, {place.variant}" if place.variant else name


def mismatches(item: Item) -> list[str]:
    """The cells that are more than 2 points from the paper, each with its remark."""
    lines = []
    for table in item.tables:
        if table.datasets and table.unit == "%":
            for entry, place, difference in far(item.entries(table)):
                row = f", {entry.printed}" if len(table.rows) > 1 and entry.printed != "GIND" else ""
                where = f"{abs(difference):.2f} points {'above' if difference > 0 else 'below'} the paper"
                other = place.protocol != "honest"
                name = f"{side(place)}," if other else SIDES[place.model == CERTIFIED]
                # a remark on the model is not one on its runs under another protocol
                text = item.remarks.find(place.system if other else place.model, place.dataset)
                lines.append(f"- {place.dataset}{row}: {name} is {where}." + (f" {text}" if text else ""))
    return [f"More than {FAR:g} points from the paper:", "", *lines, ""] if lines else []


def beware(item: Item) -> list[str]:
    """Rows whose runs had different settings, where nothing was to be chosen: a mean of these is of no one system."""
    lines = {
        f"- {place.system} on {place.dataset}: runs with different settings ({', '.join(keys)})."
        for place in item.places
        if place.row is not None and place.protocol != NESTED and (keys := _that_matter(place.model, place.row))
    }
    return ["Beware:", "", *sorted(lines), ""] if lines else []


def _that_matter(model: str, row: Row) -> list[str]:
    """Settings that differ between the runs of a row, of those that there still are and that something reads."""
    if not row.mixed:
        return []
    known = {key for section in keys_by_section(model).values() for key in section}
    # settings of an earlier version may be none that a model takes today
    with contextlib.suppress(UserError):
        known -= {*unread_options(sample_model(model, row.settings["model"]))}
    return [key for key in row.mixed if key in known]


def curve_remarks(item: Item) -> list[str]:
    """What is known about the systems of a curve; the paper has no cells there that they could be far from."""
    several = len({place.dataset for place in item.places}) > 1
    found = {}  # a remark of a model stands once, whatever varies
    for place in item.places:
        for name in (place.model, place.system):
            text = item.remarks.find(name, place.dataset)
            if text:
                found[name + (f", {place.dataset}" if several else "")] = text
    return [*(f"- {name}: {text}" for name, text in found.items()), ""] if found else []


def far(entries: Iterable[Entry]) -> Iterator[tuple[Entry, Place, float]]:
    """The places that differ from the paper by more than 2 points, with the difference.

    Not at the last epoch: that the paper's numbers are of a better one is said with the protocols.
    """
    for entry in (entry for entry in entries if entry.protocol != LAST):
        for place in (entry.published, entry.certified):
            difference = entry.difference(place)
            if place is not None and difference is not None and abs(difference) > FAR:
                yield entry, place, difference


def missing(item: Item) -> list[str]:
    """Which runs are missing and about how long they take: of GIND by name and split, of the others by number."""
    gone = item.collection.missing if item.collection is not None else ()
    groups: dict[tuple[str, str], list[Place]] = {}
    for place in item.ours:
        if place.missing and place.protocol != LAST:  # the runs of another line
            name = side(place) if place.number is None else SIDES[place.model == CERTIFIED]
            which = "all splits" if place.row is None else f"splits {ranges(place.missing)}"
            if place.row is not None and {one.split for one in place.row.singles} & set(place.missing):
                which = f"{_gone(place)} of {plural(place.expected, 'run')}"  # other seeds of these splits are there
            groups.setdefault((name, which), []).append(place)
    lines = []
    for (name, which), places in groups.items():
        there = {(place.dataset, place.system) for place in places}
        where = ", ".join(place.dataset if place.number is None else place.variant for place in places)
        lines.append(f"- {name}: {which} of {where}{_hours(item, _of(gone, there))}")
    others = _of(gone, {(place.dataset, place.system) for place in item.places if not place.ours})
    lines += [f"- other systems: {plural(len(others), 'run')}{_hours(item, others)}"] if others else []
    return ["Missing:", "", *lines, ""] if lines else []


def _of(cells: Iterable[Cell], places: Container[tuple[str, str]]) -> list[Cell]:
    """The runs of these datasets and systems, those of candidates among them."""
    return [cell for cell in cells if any((cell.dataset, name) in places for name in (cell.system, cell.chosen))]


def _hours(item: Item, cells: Sequence[Cell]) -> str:
    """About how long these runs take: as long as others of their system on their dataset, if there are any."""
    known = [seconds for cell in cells if (seconds := _seconds(item, cell)) is not None]
    if not known:
        return ""
    but = f", without {len(cells) - len(known)} of which nothing has run" if len(known) < len(cells) else ""
    hours = max(math.fsum(known) / 3600, 0.1)
    return f" (about {hours:.1f} h of one core{but})"


def _seconds(item: Item, cell: Cell) -> float | None:
    """Of a run like this one: of the same system, or of its model with another variant that is no number.

    A longer chain takes longer: what is known of another number says nothing.
    """
    rows = item.collection.rows if item.collection is not None else ()
    like = [row for row in rows if row.dataset == cell.dataset and row.model.partition("+")[0] == cell.model]
    same = [row for row in like if row.model == cell.system]
    varies = any(place.system == cell.system and place.number is not None for place in item.places)
    known = same if same or varies else like
    return known[0].seconds_per_run if known else None


def ranges(numbers: Iterable[int]) -> str:
    """0-2, 5 for 0, 1, 2, 5."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)


def _gone(place: Place) -> int:
    return place.expected - (0 if place.row is None else place.row.runs)
