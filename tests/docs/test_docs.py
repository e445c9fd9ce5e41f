"""What the documentation shows works: its Python runs, its command lines parse."""

import contextlib
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer.main

from gind.cli import app
from gind.experiments import assignment
from gind.experiments.spec import keys_by_section

ROOT = Path(__file__).parents[2]
