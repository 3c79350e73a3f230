"""Errors that a user can act on. Each kind has one exit code; `docs/architecture.md` has the table."""

from __future__ import annotations


class GniahError(Exception):
    """Something the user can mend. The message says what was wrong, where, and what was expected.

    `remedy` names the option or the step that mends it and is shown on a line of its own.
    """

    exit_code = 70

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class CheckFailed(GniahError):
    """A check ran to its end and found something wrong: verify, audit, errors while scoring."""

    exit_code = 1


class UsageFault(GniahError):
    """The command's words do not fit together."""

    exit_code = 2


class InputError(GniahError):
    """A file that was given is missing, cut, corrupt, of another kind, or of a newer schema."""

    exit_code = 3


class MissingDependency(GniahError):
    """A package, program or data file that this command needs is not installed."""

    exit_code = 4


class StoreError(GniahError):
    """The graph store cannot be opened, does not fit, or refused a query."""

    exit_code = 5


class ImpossibleRequest(GniahError):
    """The graph, the pool or the corpus cannot give what was asked for."""

    exit_code = 6


class EnvironmentFault(GniahError):
    """The machine got in the way: a full or read-only disk, no permission."""

    exit_code = 7


class BusyError(GniahError):
    """Another process is at work in the same folder."""

    exit_code = 8
