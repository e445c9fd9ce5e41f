"""Items that are curves: a key of a model or of the data varies, and its value is the name of the variant."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from gind.reports.ledger import Item, Place

__all__ = ["CURVES", "Curve", "levels", "series"]


@dataclasses.dataclass(frozen=True)
class Curve:
    """What varies, and what is shown besides the accuracy."""

    axis: str
    level: str = ""
    """what the plain model is, which has no value on the axis"""
    seconds: bool = False
    energy: bool = False
    logarithmic: bool = False
    paper: tuple[float, float] | None = None
    """up to which value on the axis the paper says that GIND keeps which accuracy"""


CURVES: Mapping[str, Curve] = MappingProxyType(
    {
        "chains": Curve("length of the chains", logarithmic=True, paper=(200, 100)),
        "chains-three": Curve("length of the chains", logarithmic=True),
        "backprop-steps": Curve("steps L", level="exact gradient", seconds=True),
        "oversmoothing": Curve("depth", energy=True, logarithmic=True),
    }
)


def series(item: Item) -> dict[str, tuple[Place, ...]]:
    """The places with a value on the axis, by model and in its order."""
    there = sorted((place for place in item.places if place.number is not None), key=lambda place: place.number or 0)
    models = dict.fromkeys(place.model for place in item.places if place.number is not None)
    return {model: tuple(place for place in there if place.model == model) for model in models}


def levels(item: Item) -> tuple[Place, ...]:
    """The places without."""
    return tuple(place for place in item.places if place.number is None)
