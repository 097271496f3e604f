"""A few rounds of the race for one sign-in, as every run of the tests has them."""

from tests.soak.renewals import PROCESSES, REQUESTS, race
from tests.support.requirement import requirement

ROUNDS = 25


@requirement("case.oa5", "fault.f42", "threat.s12")
def test_two_processes_renew_a_rotating_sign_in_once_a_round() -> None:
    report = race(ROUNDS)

    assert report["problems"] == []
    assert report["replays"] == 0
    assert report["answers"] == {"let by": ROUNDS * PROCESSES * REQUESTS}


@requirement("threat.s12", "fault.f11")
def test_a_process_that_is_killed_in_a_renewal_leaves_a_whole_file() -> None:
    report = race(6, kills=3, seed=1)

    assert report["kills"] == 3
    assert report["problems"] == []
