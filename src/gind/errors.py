"""What a user can mend. The command line prints the message as one line and exits with code 2."""

__all__ = ["MissingPackageError", "UserError"]


class UserError(Exception):
    """The base of every error whose message says what is wrong and what to do."""


class MissingPackageError(UserError, ModuleNotFoundError):
    """An optional package is not installed."""
