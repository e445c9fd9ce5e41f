"""The published GIND with every edge tensor stored: it lives in the package, for `gind bench`."""

from gind.bench.edge_storing import EdgeStoring, Settings, store_edges

__all__ = ["EdgeStoring", "Settings", "store_edges"]
