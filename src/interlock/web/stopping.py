"""Being told to stop: the first signal ends in order, the second one at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def on_signal(stop: Callable[[], object]) -> Iterator[None]:
    """Calls `stop` on the first signal; from then on a signal does what it does to any program."""
    loop = asyncio.get_running_loop()

    def told() -> None:
        release()
        stop()

    def release() -> None:
        for each in SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)

    for each in SIGNALS:
        loop.add_signal_handler(each, told)
    try:
        yield
    finally:
        for each in SIGNALS:
            loop.remove_signal_handler(each)
