"""Operators on a graph; no parameters, no training."""

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
from gind.graph.structure import Graph

__all__ = [
    "Graph",
    "Identity",
    "Moments",
    "OutDegree",
    "Row",
    "Scaling",
    "Symmetric",
    "diffuse",
    "diffuse_jvp",
    "diffuse_moments",
    "diffuse_secant",
    "divergence",
    "gradient",
    "incidence_norm",
]
