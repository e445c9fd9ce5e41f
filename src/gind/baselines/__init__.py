"""Other systems, trained by the same loop on the same splits."""

from gind.baselines.gcn import GCN
from gind.baselines.mlp import MLP

__all__ = ["GCN", "MLP"]
