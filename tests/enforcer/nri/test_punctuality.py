"""For how long the runtime may have waited, by what the plugin saw of its socket."""

from enforcer.nri.punctuality import Punctuality


def test_a_request_came_since_the_socket_was_last_known_to_be_empty():
    times = Punctuality(0.0)
    times.reading(10.0, begins=True, drained=True)
    assert (times.at_least(11.0), times.at_most(11.0)) == (1.0, 11.0)
    times.reading(12.0, begins=True, drained=True)
    assert (times.at_least(12.5), times.at_most(12.5)) == (0.5, 2.5)


def test_a_look_that_finds_nothing_speaks_for_the_moment_of_the_look_before():
    """Between a look's own moment and the poll before it, something may have come."""
    times = Punctuality(0.0)
    for moment in (1.0, 2.0, 3.0):
        times.looked(moment)
    times.reading(9.0, begins=True, drained=True)
    assert times.at_most(9.0) == 7.0


def test_a_long_request_counts_from_its_first_bytes_and_what_is_left_in_the_socket_is_not_known_to_be_new():
    times = Punctuality(0.0)
    times.reading(5.0, begins=True, drained=False)
    times.reading(6.0, begins=False, drained=True)
    assert (times.at_least(8.0), times.at_most(8.0)) == (3.0, 8.0)
    times.reading(9.0, begins=True, drained=False)
    times.reading(9.5, begins=True, drained=True)
    assert times.at_most(9.5) == 3.5
