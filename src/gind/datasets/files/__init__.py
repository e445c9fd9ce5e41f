"""The user's own graph: a directory with tables of nodes and of edges, or a GraphML file."""

from gind.datasets.files.read import feature_names, is_graph_path, read_graph

__all__ = ["feature_names", "is_graph_path", "read_graph"]
