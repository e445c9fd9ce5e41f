"""Operators on a graph; no parameters, no training."""

from gind.graph.components import components
from gind.graph.door import as_graph
from gind.graph.incidence import (
    Moments,
    diffuse,
    diffuse_jvp,
    diffuse_moments,
    diffuse_secant,
    divergence,
    gradient,
)
from gind.graph.normalize import Identity, OutDegree, Row, Scaling, Symmetric, incidence_norm
from gind.graph.pool import Pooling, pool
from gind.graph.structure import Graph

__all__ = [
    "Graph",
    "Identity",
    "Moments",
    "OutDegree",
    "Pooling",
    "Row",
    "Scaling",
    "Symmetric",
    "as_graph",
    "components",
    "diffuse",
    "diffuse_jvp",
    "diffuse_moments",
    "diffuse_secant",
    "divergence",
    "gradient",
    "incidence_norm",
    "pool",
]
