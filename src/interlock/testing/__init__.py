"""For people's own test suites: `TestInterlock`, the contract of a channel, and fixtures for pytest.

The package is a pytest plugin, which pytest loads by itself where `interlock-gate` is installed. So it loads nothing
until a name or a fixture is used. No module of a program that is started imports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock.testing.channels import ChannelContract, FakeService, make_notification, make_view
    from interlock.testing.lock import CheckedCall, ScriptedDecision, TestInterlock, UnexpectedApproval

_EXPORTS = {
    "channels": ("ChannelContract", "FakeService", "make_notification", "make_view"),
    "lock": ("CheckedCall", "ScriptedDecision", "TestInterlock", "UnexpectedApproval"),
}

__all__ = [  # noqa: PLE0604, RUF100  loaded on first use
    "ChannelContract",
    "CheckedCall",
    "FakeService",
    "ScriptedDecision",
    "TestInterlock",
    "UnexpectedApproval",
    "make_notification",
    "make_view",
]


def __getattr__(name: str) -> Any:
    for module, names in _EXPORTS.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


try:
    import pytest
except ModuleNotFoundError:
    pass  # other test runners use the names above, without fixtures
else:

    @pytest.fixture
    def interlock_policy() -> object:
        """The policy of `interlock_lock`; override this fixture to use your own: a path, a text or a mapping."""
        return None

    @pytest.fixture
    def interlock_lock(interlock_policy: Any, request: pytest.FixtureRequest) -> Iterator[TestInterlock]:
        """A `TestInterlock` for one test, closed after it; a call that asked and was not answered fails the test."""
        from interlock.testing.lock import TestInterlock

        failed_before = request.session.testsfailed
        lock = TestInterlock(policy=interlock_policy)
        yield lock
        lock.close()
        if request.session.testsfailed == failed_before:  # otherwise it was reported
            lock.raise_unexpected()
