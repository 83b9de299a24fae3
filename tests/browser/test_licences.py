"""What the page contains of others comes with its licences."""

from __future__ import annotations

from pathlib import Path

import interlock.server


def test_the_built_page_carries_the_licences_of_its_fonts_and_packages() -> None:
    text = Path(interlock.server.__file__).with_name("ui").joinpath("licences.txt").read_text()
    for name in ("@fontsource-variable/inter", "@fontsource-variable/jetbrains-mono", "react", "@mantine/core"):
        assert f"==== {name} " in text
    for words in ("The Inter Project Authors", "The JetBrains Mono Project Authors", "SIL OPEN FONT LICENSE"):
        assert words in text
