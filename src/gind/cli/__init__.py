"""The command line `gind`. Nothing here imports PyTorch before a command needs it."""

from gind.cli.app import app, main

__all__ = ["app", "main"]
