"""The entry point of the command; `python -m interlock` is the same as `interlock`."""

import sys

from interlock.runtime.process_identity import answer_on_signal


def main() -> None:
    """Run the command.

    A hook sets its signal handlers first: if stopped while modules load, it still denies the call.
    """
    if sys.argv[1:2] == ["hook"]:
        answer_on_signal()
    from interlock.cli import main as run  # noqa: PLC0415  a slow import

    run()


if __name__ == "__main__":
    main()
