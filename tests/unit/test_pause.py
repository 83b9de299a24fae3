"""Paused runs: limits on their stored state, and the delay after a failed resume."""

import pytest

from interlock.core.errors import Forbidden, InvalidRequest
from interlock.core.run import MAX_RUN_ID, MAX_STATE, check_pause, next_fence, retry_delay


@pytest.mark.parametrize("run_id", [None, 7, "", "x" * (MAX_RUN_ID + 1), "a\x00b", "half \ud800"])
def test_a_run_has_an_id_that_can_be_stored(run_id: object) -> None:
    with pytest.raises(InvalidRequest, match="run_id is a text of 1 to 2,000 characters"):
        check_pause(run_id, b"")


def test_a_run_of_the_chat_is_not_for_programs() -> None:
    with pytest.raises(Forbidden, match="belongs to the chat"):
        check_pause("thread-00000000-0000-0000-0000-000000000000", b"")


@pytest.mark.parametrize(
    ("state", "said"), [("text", "state is bytes, not str"), (bytes(MAX_STATE + 1), "4,194,304 can be kept")]
)
def test_a_state_is_bytes_and_not_too_many(state: object, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        check_pause("run", state)


@pytest.mark.parametrize("run_id", ["r", "x" * MAX_RUN_ID, "Gespräch 7/a\n", "🧵"])
def test_whatever_a_framework_calls_its_run_will_do(run_id: str) -> None:
    check_pause(run_id, bytes(MAX_STATE))
    check_pause(run_id, bytearray(b""))
    assert len(run_id) <= MAX_RUN_ID


def test_a_run_that_fails_is_left_alone_for_longer_each_time_and_not_for_ever() -> None:
    assert [retry_delay(attempts) for attempts in (0, 1, 2, 3, 9, 10, 10_000)] == [
        *(1_000, 1_000, 2_000, 4_000),
        *(256_000, 300_000, 300_000),
    ]


def test_a_fence_is_new_by_its_number_or_by_the_time() -> None:
    assert next_fence(7, 0) == 8
    assert next_fence(0, 1_800_000_000_000) == 1_800_000_000_000
