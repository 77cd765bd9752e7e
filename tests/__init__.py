"""Tests of the mesh: `unit` needs nothing, `integration`, `faults` and `e2e` need real servers.

Random tests are modest by default; `--hypothesis-profile=deep` looks longer. In CI they try
the same cases each time, so that what fails there is the change that is looked at.
"""

import os

from hypothesis import HealthCheck, settings

# a shared machine is slow now and then, which is no finding about the code
_CALM = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)

settings.register_profile("modest", _CALM, max_examples=25)
settings.register_profile("deep", _CALM, max_examples=250, derandomize=False)
settings.load_profile("modest")
