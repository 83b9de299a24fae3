"""The rate limiter for failed attempts."""

from interlock.core.rate_limit import MAX_NAMES, MINUTE, AttemptLimiter

NOW = 1_800_000_000_000


def test_after_the_limit_one_has_to_wait_for_the_rest_of_the_minute() -> None:
    attempts = AttemptLimiter(2)
    assert attempts.retry_after("bob", NOW) == 0
    attempts.record_attempt("bob", NOW)
    assert attempts.retry_after("bob", NOW + 1_000) == 0
    attempts.record_attempt("bob", NOW + 1_000)
    assert [attempts.retry_after("bob", NOW + after) for after in (1_000, 1_001, MINUTE - 1, MINUTE)] == [59, 59, 1, 0]
    assert attempts.retry_after("eve", NOW + 1_000) == 0


def test_a_new_minute_counts_from_its_first_attempt() -> None:
    attempts = AttemptLimiter(1)
    attempts.record_attempt("bob", NOW)
    attempts.record_attempt("bob", NOW + MINUTE)
    assert attempts.retry_after("bob", NOW + MINUTE + 1) == 60


def test_a_success_takes_back_its_own_attempt_only() -> None:
    attempts = AttemptLimiter(2)
    for _ in range(2):
        attempts.record_attempt("bob", NOW)
    attempts.forgive("bob")
    assert attempts.retry_after("bob", NOW) == 0
    attempts.record_attempt("bob", NOW)
    assert attempts.retry_after("bob", NOW) == 60
    for _ in range(3):
        attempts.forgive("bob")
    assert attempts.retry_after("bob", NOW) == 0


def test_a_clock_that_goes_back_keeps_nobody_waiting_for_ever() -> None:
    attempts = AttemptLimiter(1)
    attempts.record_attempt("bob", NOW)
    assert attempts.retry_after("bob", NOW - 1) == 0


def test_memory_is_bounded_and_the_oldest_goes_first() -> None:
    attempts = AttemptLimiter(1)
    for number in range(MAX_NAMES + 1):
        attempts.record_attempt(f"name{number}", NOW)
    assert (attempts.retry_after("name0", NOW), attempts.retry_after("name1", NOW)) == (0, 60)
