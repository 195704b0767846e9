"""What an interrupt (Ctrl-C) does: end the program while it loads, raise KeyboardInterrupt while a command runs.

Imported before everything else by `__main__`, so it imports next to nothing itself.
"""

import os

INTERRUPTED = 130
"""Exit code after Ctrl-C, as of a program that a shell sees ended by SIGINT (128 + 2)."""


def exit_at_once(*_: object) -> None:
    """End the process with one line, as a handler of SIGINT.

    While a program loads there is nothing to clean up, and an exception would not arrive: libraries turn it into other
    ones or drop it, for instance when it is raised while a class is created or a module lock is released.
    """
    os.write(2, b"jointwise: interrupted.\n")
    os._exit(INTERRUPTED)


try:
    import signal
except KeyboardInterrupt:
    exit_at_once()


def exit_at_interrupts() -> None:
    """Let interrupts end the process; if they are ignored (nohup) or handled by a caller, that stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, exit_at_once)


def raise_at_interrupts() -> None:
    """Undo `exit_at_interrupts`, so that a command can clean up."""
    if signal.getsignal(signal.SIGINT) is exit_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def is_interrupt(problem: BaseException | None) -> bool:
    """Return whether an exception is a KeyboardInterrupt, or one that a library raised because of it."""
    while problem is not None and not isinstance(problem, KeyboardInterrupt):
        problem = problem.__cause__ or problem.__context__
    return problem is not None
