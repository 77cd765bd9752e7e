"""Tests of the mesh: `unit` needs nothing, `integration`, `faults` and `e2e` need real servers.

Random tests are modest by default; `--hypothesis-profile=deep` looks longer. Each run tries other
cases; those of a run come again with the SDM_TEST_DRAW in its header.
"""

from hypothesis import HealthCheck, settings

# a shared machine is slow now and then, which is no finding about the code
_CALM = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=False,  # hypothesis would in CI
    print_blob=True,
)

settings.register_profile("modest", _CALM, max_examples=25)
settings.register_profile("deep", _CALM, max_examples=250)
settings.load_profile("modest")
