"""The user's own graph: a directory with tables of nodes and of edges, or a GraphML file."""

from gind.datasets.files.read import is_graph_path, read_graph

__all__ = ["is_graph_path", "read_graph"]
