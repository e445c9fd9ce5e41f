"""What the documentation shows works: its Python runs, its command lines parse."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
