"""The environment of the tests' own process stays as it is: threads of clusters and stand-ins copy it at any time."""

import os


def test_pytest_does_not_tell_in_it_which_test_runs() -> None:
    assert "PYTEST_CURRENT_TEST" not in os.environ
