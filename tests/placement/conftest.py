"""No test of pure functions fails because its machine is busy: hypothesis' clock is off."""

from hypothesis import settings

settings.register_profile("numakin", deadline=None)
settings.load_profile("numakin")
