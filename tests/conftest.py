"""Settings for all tests, and which of the many cases of the contract wait for `make test-all`."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from zoo import BY_OTHERS

# No test fails because the machine is slow or busy.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# Methods by other authors go through the whole contract in the slow tests only; otherwise on two problems, each with
# another kind of estimate.
CHEAP = {"ridge": {"default"}, "translated": {"central, supports"}}


def is_cheap(item: pytest.Function) -> bool:
    """Whether a case of a method by other authors is run every time."""
    ids = item.callspec.id
    if "workers" in item.callspec.params:
        return item.callspec.params["workers"] == 2
    if "problem" not in item.callspec.params:
        return True
    kinds = next((kinds for problem, kinds in CHEAP.items() if problem in ids), None)
    if kinds is None:
        return False
    return any(kind in ids for kind in kinds) if "estimator" in item.callspec.params else "ridge" in ids


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name == "test_contract.py" and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            if item.callspec.params.get("name") in BY_OTHERS and not is_cheap(item):
                item.add_marker(pytest.mark.slow)
