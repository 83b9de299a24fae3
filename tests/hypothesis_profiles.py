"""Profiles of property tests: `--hypothesis-profile=nightly`, or the quick default `dev`."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings

DEV_EXAMPLES = 25
NIGHTLY_EXAMPLES = 100


def register_profiles() -> None:
    """`dev` draws the same examples each time; `nightly` searches at random."""
    common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("nightly", max_examples=NIGHTLY_EXAMPLES, **common)
    settings.register_profile("dev", max_examples=DEV_EXAMPLES, derandomize=True, database=None, **common)
    settings.load_profile("dev")


def examples(nightly: int, **more: Any) -> settings:
    """How many examples a test draws with the profile `nightly`; with `dev`, a quarter of that."""
    share = settings.default.max_examples / NIGHTLY_EXAMPLES
    return settings(max_examples=max(10, round(nightly * share)), **more)
