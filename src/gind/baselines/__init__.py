"""The other systems of the paper, trained by the same loop on the same splits."""

from gind.baselines.appnp import APPNP
from gind.baselines.cgs import CGS
from gind.baselines.dcnn import DCNN
from gind.baselines.dgcnn import DGCNN
from gind.baselines.eignn import EIGNN
from gind.baselines.fdgnn import FDGNN
from gind.baselines.gat import GAT
from gind.baselines.gcn import GCN
from gind.baselines.gcnii import GCNII
from gind.baselines.geom_gcn import GeomGCN
from gind.baselines.gin import GIN
from gind.baselines.h2gcn import H2GCN
from gind.baselines.ignn import IGNN
from gind.baselines.jknet import JKNet
from gind.baselines.mlp import MLP
from gind.baselines.sage import SAGE
from gind.baselines.sgc import SGC
from gind.baselines.wl import WL

__all__ = [
    "APPNP",
    "CGS",
    "DCNN",
    "DGCNN",
    "EIGNN",
    "FDGNN",
    "GAT",
    "GCN",
    "GCNII",
    "GIN",
    "H2GCN",
    "IGNN",
    "MLP",
    "SAGE",
    "SGC",
    "WL",
    "GeomGCN",
    "JKNet",
]
