"""Saving and loading tensors with what describes them, in one safetensors file that is whole or not there."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.optim import Optimizer

from gind.errors import UserError
from gind.files import write_atomically

__all__ = [
    "CheckpointError",
    "DamagedError",
    "load_tensors",
    "optimizer_tensors",
    "restore_optimizer",
    "save_tensors",
    "section",
]

FORMAT = 1


class CheckpointError(UserError, ValueError):
    """A file of saved tensors that cannot be used; the message says why and what to do."""


class DamagedError(CheckpointError):
    """The file is broken, whatever it was asked for: nothing can go on from it."""


def save_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any], kind: str) -> None:
    """Write tensors and a JSON description, atomically."""
    header = {"gind": json.dumps({"format": FORMAT, "kind": kind, **about})}
    # safetensors refuses views of one memory; a clone costs little
    whole = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    # not `save_file`, which writes through a temporary file of its own that a kill would leave behind
    with write_atomically(path) as temporary:
        temporary.write_bytes(save(whole, metadata=header))


def load_tensors(path: Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote, and refuse anything else."""
    if not path.is_file():
        raise CheckpointError(f"{path} does not exist.")
    try:
        with safe_open(path, framework="pt") as file:
            header, names = file.metadata() or {}, file.keys()
            # copies: at an odd address in the file, sums could be rounded in another order
            tensors = {name: file.get_tensor(name).clone() for name in names}
        about = json.loads(header["gind"])
        found = about["format"], about["kind"]
    except (OSError, RuntimeError) as error:  # the file may be whole: too many are open, or memory is short
        raise CheckpointError(f"{path} cannot be read: {error}.") from error
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"{path} is damaged ({error}). Delete it and train again.") from error
    if found != (FORMAT, kind):
        raise CheckpointError(f"{path} does not hold a gind {kind} of format {FORMAT}, but {found[1]} of {found[0]}.")
    return tensors, about


def section(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors under `prefix.`, without it."""
    start = f"{prefix}."
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}


def optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    """The optimizer's state, flat: `<number of the parameter>.<name>`."""
    state = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": torch.as_tensor(value) for number, values in state.items() for name, value in values.items()
    }


def restore_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put the state back; the parameter groups stay as they are."""
    whole = optimizer.state_dict()
    state: dict[int, dict[str, Tensor]] = {}
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for key, tensor in tensors.items():
        number, name = key.split(".", 1)
        state.setdefault(int(number), {})[name] = tensor
    for index, values in state.items():
        if not 0 <= index < len(parameters):
            raise KeyError(f"there is no parameter {index}")
        missing = {"step", "exp_avg", "exp_avg_sq"} - set(values)
        if missing or values["exp_avg"].shape != parameters[index].shape:
            raise KeyError(f"the state of parameter {index}")
    optimizer.load_state_dict({"state": state, "param_groups": whole["param_groups"]})
