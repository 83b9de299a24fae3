"""Profiles of property tests: `--hypothesis-profile=nightly`, or the quick default `dev`."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings

DEV_EXAMPLES = 25
MAX_DEV_EXAMPLES = 100  # they are the same each time, so more of them find nothing new
NIGHTLY_EXAMPLES = 100


def register_profiles() -> None:
    """`dev` draws the same examples each time; `nightly` searches at random, in CI too, where Hypothesis would not."""
    common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("nightly", max_examples=NIGHTLY_EXAMPLES, derandomize=False, print_blob=True, **common)
    settings.register_profile("dev", max_examples=DEV_EXAMPLES, derandomize=True, database=None, **common)
    settings.load_profile("dev")


def examples(nightly: int, **more: Any) -> settings:
    """How many examples a test draws with the profile `nightly`; with `dev`, a quarter of that and at most 100."""
    is_dev = settings.default.max_examples < NIGHTLY_EXAMPLES
    drawn = min(MAX_DEV_EXAMPLES, nightly * DEV_EXAMPLES // NIGHTLY_EXAMPLES) if is_dev else nightly
    return settings(max_examples=max(10, drawn), **more)
