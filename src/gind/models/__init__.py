"""Models: encoder → Diffusion → head."""

from gind.models.conv import GINDConv
from gind.models.gind import GIND

__all__ = ["GIND", "GINDConv"]
