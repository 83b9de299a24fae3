"""The entry point of the command; `python -m interlock` is the same as `interlock`."""

import sys

from interlock.runtime.process_identity import answer_on_signal


def main() -> None:
    """A hook can be ended while it still loads what it needs: it has its answer before that."""
    if sys.argv[1:2] == ["hook"]:
        answer_on_signal()
    from interlock.cli import main as run  # noqa: PLC0415  it takes a while

    run()


if __name__ == "__main__":
    main()
