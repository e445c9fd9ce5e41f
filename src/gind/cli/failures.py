"""How commands end when something is wrong."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator

import typer

from gind.errors import UserError

__all__ = ["errors"]


@contextlib.contextmanager
def errors() -> Iterator[None]:
    """What a user can mend becomes one line and exit code 2; whatever else is wrong keeps its traceback."""
    # a terminal or file that cannot show a letter shows a question mark
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(OSError):  # a stream that was used for something else
                stream.reconfigure(errors="replace")
    try:
        yield
    except BrokenPipeError:
        # whoever read our output has enough; keep Python from complaining when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except UserError as error:
        _fail(str(error), error)
    except RuntimeError as error:
        from gind.equilibrium import ConvergenceError  # here: it brings torch, which `--help` need not wait for

        if not isinstance(error, ConvergenceError):
            raise
        _fail(str(error), error)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}", error)


def _fail(message: str, error: Exception) -> None:
    typer.echo(f"gind: {' '.join(message.split())}", err=True)
    raise typer.Exit(2) from error
