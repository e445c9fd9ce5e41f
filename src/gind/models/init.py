"""How the linear maps of a model begin."""

from typing import Literal

from torch import nn

__all__ = ["Init", "start_linear"]

Init = Literal["uniform", "normal"]


def start_linear(model: nn.Module, last: nn.Linear) -> None:
    """Kaiming normal, W ~ N(0, 2/in), for every linear map, Xavier normal, N(0, 2/(in + out)), for the last; biases 0.

    This is how the published code begins; K and U of a `Diffusion` always do.
    """
    for module in model.modules():
        if isinstance(module, nn.LazyLinear):
            raise ValueError('`init="normal"` needs the width of the input. Pass `in_channels`.')
        if isinstance(module, nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    nn.init.xavier_normal_(last.weight)
