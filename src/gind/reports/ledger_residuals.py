"""How far the runs of GIND are from an equilibrium, in Markdown."""

from gind.experiments.protocol import LAST
from gind.reports.ledger import PUBLISHED, Item, Place
from gind.reports.ledger_words import side
from gind.reports.numbers import scientific
from gind.text import table

__all__ = ["convergence"]


def convergence(item: Item) -> list[str]:
    """Residual and bound of both profiles, the worst of their runs."""
    rows = []
    for place in item.ours:
        solved = None if place.row is None else place.row.convergence
        if solved is not None and place.protocol != LAST:  # the runs of another line
            asked, alpha, layers = solved.tolerance > 0, *_damping(place)
            rows.append(
                [
                    place.dataset,
                    side(place),
                    scientific(solved.residual / alpha if layers == 1 else solved.residual),
                    "" if layers == 1 else f"{alpha:.2g}",
                    scientific(solved.tolerance) if asked else "none asked",
                    f"{solved.reached}/{place.row.runs}" if asked and place.row is not None else "",
                    str(solved.unsolved) if asked else "",
                    scientific(solved.bound),
                ]
            )
    if not rows:
        return []
    return [
        "How far from an equilibrium, the worst of all runs:",
        "",
        *table(["dataset", "profile", "residual", "α", "tolerance", "reached", "missed", "bound"], rows, left=2),
        "",
    ]


def _damping(place: Place) -> tuple[float, int]:
    """α of the step whose residual was measured, and how many such steps it is composed of; 1 and 1 for f itself."""
    model = {} if place.row is None else place.row.settings["model"]
    alpha = model.get("alpha", 1.0)
    if place.model != PUBLISHED or not isinstance(alpha, float) or not 0 < alpha < 1:
        return 1.0, 1
    layers = model.get("layers", 1)
    return alpha, layers if isinstance(layers, int) else 0
