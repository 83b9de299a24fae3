"""What counts as catching a broken copy: the expected words, not any fault."""

import pytest

from tests.faults.__main__ import SUITES
from tests.faults.database_controls import NOTICED
from tests.faults.reports import is_noticed

pytestmark = pytest.mark.smoke  # no process is started


def test_a_broken_copy_is_noticed_by_its_own_words_alone() -> None:
    wrong = ["a program ended with 1", {"laws": ["pay ran 2 times"]}]
    assert is_noticed(wrong, "ran 2 times")
    assert is_noticed(wrong, ("a late finish was taken", "ran 2 times"))
    assert not is_noticed(wrong, "a late finish was taken")
    assert not is_noticed([], "ran 2 times")


@pytest.mark.parametrize("noticed", ["", (), ("ran 2 times", "")])
def test_words_that_are_in_everything_are_refused(noticed: str | tuple[str, ...]) -> None:
    with pytest.raises(AssertionError):
        is_noticed(["a program ended with 1"], noticed)


def test_every_red_control_names_what_is_noticed() -> None:
    controls = [(suite.name, name, control) for suite in SUITES for name, control in suite.controls.items()]
    assert controls
    for suite, name, control in controls:
        assert not is_noticed(["something else"], control.noticed), (suite, name)


def test_a_lost_disk_and_a_lost_batch_are_told_apart() -> None:
    """Both are acknowledged and then not so: of the one nothing is left of a call, by the other it is a step behind."""
    disk, batch, start = "id was succeeded and is gone", "id was pending and is gone", "id was ran and is approved"
    assert is_noticed([disk], NOTICED["no-fsync"])
    assert not is_noticed([batch, start], NOTICED["no-fsync"])
    for control in ("taken-for-done", "unheard"):
        assert is_noticed([batch], NOTICED[control])
        assert not is_noticed([disk, start], NOTICED[control])
    assert is_noticed([start], NOTICED["fail-open"])
    assert not is_noticed([disk, batch], NOTICED["fail-open"])


def test_suites_are_chosen_by_name_or_by_its_beginning() -> None:
    assert [suite.name for suite in SUITES if suite.is_called("parity")] == ["parity"]
    over_http = [suite.name for suite in SUITES if suite.is_called("http")]
    assert over_http
    assert all(name.startswith("http-") for name in over_http)
    assert not any(suite.is_called("htt") for suite in SUITES)
