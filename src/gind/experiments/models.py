"""Models by name: what builds them, which keys they have, and their defaults on a dataset."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

from torch import nn

from gind.baselines import (
    APPNP,
    CGS,
    DCNN,
    DGCNN,
    EIGNN,
    FDGNN,
    GAT,
    GCN,
    GCNII,
    GIN,
    H2GCN,
    IGNN,
    MLP,
    SAGE,
    SGC,
    WL,
    GeomGCN,
    JKNet,
)
from gind.datasets.table import nearest
from gind.diffusion import (
    Decorrelation,
    Diffusion,
    EdgeNorm,
    Elimination,
    FrozenNorm,
    Laplacian,
    LaplacianStep,
    LiveNorm,
    Regularizer,
)
from gind.equilibrium import (
    Adjoint,
    Anderson,
    Broyden,
    HeavyBall,
    Implicit,
    Nesterov,
    NewtonCG,
    Phantom,
    Picard,
    Preconditioner,
    Solver,
    Unrolled,
)
from gind.experiments.keys import ConfigError, Key, Kinds, keys_of
from gind.experiments.toml import parse_toml
from gind.graph import Identity, OutDegree, Row, Scaling, Symmetric
from gind.models import GIND
from gind.train import Constant, Cosine, Linear, Restarts, Schedule, StepDecay

__all__ = ["KINDS", "MODELS", "ModelEntry", "datasets_with_defaults", "defaults", "model_entry"]

KINDS: Kinds = {
    Scaling: {"symmetric": Symmetric, "row": Row, "out-degree": OutDegree, "identity": Identity},
    EdgeNorm: {"frozen": FrozenNorm, "live": LiveNorm},
    Regularizer: {"laplacian": Laplacian, "laplacian-step": LaplacianStep, "decorrelation": Decorrelation},
    Solver: {
        "picard": Picard,
        "nesterov": Nesterov,
        "heavy-ball": HeavyBall,
        "anderson": Anderson,
        "newton-cg": NewtonCG,
        "broyden": Broyden,
    },
    Preconditioner: {"elimination": Elimination},
    Adjoint: {"implicit": Implicit, "phantom": Phantom, "unrolled": Unrolled},
    Schedule: {"constant": Constant, "cosine": Cosine, "linear": Linear, "step": StepDecay, "restarts": Restarts},
}

# the short names of parameters that every model has
_SHORT = {"hidden_channels": "hidden", "num_layers": "layers"}
# these come from the data, not from a configuration
_FROM_DATA = ("in_channels", "out_channels", "task", "channels")


@dataclasses.dataclass(frozen=True)
class ModelEntry:
    """A model class, and the classes whose parameters it passes on."""

    build: Callable[..., nn.Module]
    passes_on: tuple[Callable[..., Any], ...] = ()
    tasks: tuple[str, ...] = ("node", "graph", "multilabel")
    hidden: int = 64
    about: str | None = None
    """one line, where the class does not say it all"""

    @functools.cached_property
    def keys(self) -> dict[str, Key]:
        """Key of a configuration → parameter."""
        merged: dict[str, Key] = {}
        for target in (self.build, *self.passes_on):
            # GIND calls the layer's own dropout diffusion_dropout; its `dropout` comes first
            merged |= {k: v for k, v in keys_of(target, _FROM_DATA).items() if k not in merged}
        keys = {_SHORT.get(name, name): key for name, key in merged.items()}
        if "hidden" in keys:
            keys["hidden"] = dataclasses.replace(keys["hidden"], default=self.hidden)
        return keys

    def for_data(self, task: str, features: int, classes: int, options: Mapping[str, Any]) -> nn.Module:
        """A new model for data of this task and these widths; `options` are objects by key."""
        self._check(options)
        arguments = {self.keys[name].name: value for name, value in options.items()}
        arguments.setdefault(self.keys["hidden"].name, self.hidden)
        if "task" in keys_of(self.build):
            arguments["task"] = "graph" if task == "graph" else "node"
        try:
            return self.build(in_channels=features, out_channels=classes, **arguments)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"The model cannot be built: {error}") from error
        except (RuntimeError, MemoryError) as error:  # torch's way to say that there is not enough memory
            hidden = arguments[self.keys["hidden"].name]
            raise ConfigError(f"The model cannot be built with hidden = {hidden}: {error}") from error

    def _check(self, options: Mapping[str, Any]) -> None:
        """What means the same for every model is checked once, and under the names that users know."""
        for name, value in options.items():
            if name in ("hidden", "layers") and value < 1:
                raise ConfigError(f"{name} must be at least 1 (>= 1), got {value}.")
            if name.endswith("dropout") and not 0 <= value < 1:
                raise ConfigError(f"{name} must lie in [0, 1), got {value}.")


_NODES = ("node", "multilabel")

MODELS: dict[str, ModelEntry] = {
    "gind": ModelEntry(GIND, (Diffusion,)),
    "gind-published": ModelEntry(GIND, (Diffusion,), about="GIND with the options of the published code."),
    "mlp": ModelEntry(MLP),
    "gcn": ModelEntry(GCN, tasks=_NODES),
    "sgc": ModelEntry(SGC, tasks=_NODES),
    "gat": ModelEntry(GAT, tasks=_NODES, hidden=8),
    "sage": ModelEntry(SAGE, tasks=_NODES),
    "jknet": ModelEntry(JKNet, tasks=_NODES),
    "appnp": ModelEntry(APPNP, tasks=_NODES),
    "gcnii": ModelEntry(GCNII, tasks=_NODES),
    "geom-gcn": ModelEntry(GeomGCN, tasks=_NODES, hidden=16),
    "h2gcn": ModelEntry(H2GCN, tasks=_NODES),
    "ignn": ModelEntry(IGNN),
    "eignn": ModelEntry(EIGNN, tasks=_NODES),
    "cgs": ModelEntry(CGS),
    "dcnn": ModelEntry(DCNN, tasks=("graph",)),
    "dgcnn": ModelEntry(DGCNN, tasks=("graph",), hidden=32),
    "gin": ModelEntry(GIN, tasks=("graph",), hidden=32),
    "fdgnn": ModelEntry(FDGNN, tasks=("graph",)),
    "wl": ModelEntry(WL, tasks=("graph",)),
}


def model_entry(name: str) -> ModelEntry:
    """The entry of a name; refused with the nearest one."""
    if name not in MODELS:
        raise ConfigError(f"There is no model {name!r}. {nearest(name, MODELS)}")
    return MODELS[name]


@functools.cache
def _all_defaults(model: str) -> dict[str, Any]:
    file = resources.files("gind.experiments").joinpath("defaults", f"{model}.toml")
    return parse_toml(file.read_text(encoding="utf-8"), str(file)) if file.is_file() else {}


def defaults(model: str, dataset: str) -> dict[str, Any]:
    """Values by key that suit this model on this dataset; they lie in defaults/<model>.toml.

    What stands in [all] is for every dataset, in [dataset] for that one; its `like` names another to begin with.
    """
    tables = _all_defaults(model)
    return {**tables.get("all", {}), **_own(tables, dataset)}


def _own(tables: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    own = dict(tables.get(dataset, {}))
    like = own.pop("like", None)
    if like is None:
        return own
    assert like in tables, f"defaults: [{dataset}] is like {like!r}, which has no table"
    return {**_own(tables, like), **own}


def datasets_with_defaults(model: str) -> tuple[str, ...]:
    """The datasets that have defaults of their own for this model."""
    return tuple(name for name in _all_defaults(model) if name != "all")
