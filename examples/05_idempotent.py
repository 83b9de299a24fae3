"""A tool that may be run again under the same key: after a crash it is retried, and nobody is asked twice.

python examples/05_idempotent.py sqlite:///interlock.db crash   in one terminal: it waits, then dies inside the tool
interlock approvals approve ID                                  in another one
python examples/05_idempotent.py                                goes on: the same key, no new question
"""

import os
import signal
import sys
from pathlib import Path

from interlock import Interlock

lock = Interlock(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db")


@lock.tool(effect="write", idempotent=True, describe="Send {text!r}")
def send(text: str) -> str:
    """Stands for a service that takes an idempotency key: what comes twice under one key is one message."""
    if execution := lock.execution():
        print(f"attempt {execution.fence} under the key {execution.idempotency_key}", flush=True)
        Path(f"sent-{execution.idempotency_key}.txt").write_text(text)
    if sys.argv[2:] == ["crash"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return "sent"


print(send("Good morning"))
