"""The first program on the page of the OpenAI Agents SDK in the docs, with a script in the place of its model."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from agents.models.multi_provider import MultiProvider

from tests.frameworks.programs.model_scripts import Call
from tests.frameworks.programs.openai_agents_model import ScriptedModel

WANTED = (Call("call_1", "refund", {"order": "A1", "euros": 20}),)


def main(page: Path) -> None:
    def get_model(*_: object) -> Any:
        return ScriptedModel(lambda told: " ".join(told) or WANTED)

    MultiProvider.get_model = get_model  # type: ignore[method-assign]
    found = re.search(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert found
    exec(compile(found[1], str(page), "exec"), {"__name__": "__main__"})  # noqa: S102  it is our own page


if __name__ == "__main__":
    main(Path(sys.argv[1]))
