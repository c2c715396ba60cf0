from enforcer.observe.bpf.idle import IDLE_READINGS, IDLE_READINGS_CROWDED, Idle


def readings_until_deleted(idle, events):
    for reading in range(1, 100):
        if "still" in idle.after(events(reading)):
            return reading
    return None


def test_a_key_goes_when_it_stood_still_long_enough():
    assert readings_until_deleted(Idle(100), lambda _: {"still": 7}) == IDLE_READINGS + 1


def test_in_a_crowded_map_it_goes_sooner():
    assert readings_until_deleted(Idle(4), lambda n: {"still": 7, "a": n, "b": n}) == IDLE_READINGS_CROWDED + 1


def test_a_key_that_moves_stays():
    assert readings_until_deleted(Idle(4), lambda n: {"still": n, "a": n, "b": n}) is None
