"""Every fact about the sandbox is tested on every backend that works on this machine."""

from collections.abc import Callable

import pytest

from sandbox import Backend, SandboxResult, SandboxSpec
from sandbox.backends import candidates
from sandbox.runner import probe_backend, run_on

WORKING = [candidate for candidate in candidates() if not probe_backend(candidate)]

PYTHON = ["python3", "-I", "-S", "-c"]


@pytest.fixture(params=WORKING, ids=lambda backend: f"{backend.name}{'-user' if backend.user_namespace else ''}")
def isolation(request: pytest.FixtureRequest) -> Backend:
    return request.param


@pytest.fixture
def python(isolation: Backend) -> Callable[..., SandboxResult]:
    """Run Python source in the sandbox; keyword arguments go to the spec."""

    def run_source(source: str, **limits: object) -> SandboxResult:
        return run_on(isolation, SandboxSpec([*PYTHON, source], **{"timeout_seconds": 10, **limits}))

    return run_source
