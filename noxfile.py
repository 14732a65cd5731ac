"""`make test-pythons`: the tests that are not slow, on every Python that the package supports.

The whole suite runs on one version (`make test`). An interpreter that is not installed is skipped, and nox says so.
"""

import os

import nox

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
VERSIONS = nox.project.python_versions(nox.project.load_toml("pyproject.toml"))
"""From the classifiers of pyproject.toml, so that what is declared is what is tested."""


@nox.session(python=VERSIONS)
def tests(session: nox.Session) -> None:
    """Install the package with everything, and run the tests that are not slow."""
    session.install("--quiet", "-e", ".[all]")
    jobs = str(os.cpu_count() or 2)
    session.run("python", "-m", "pytest", "-q", "-n", jobs, "--dist", "loadfile", "-m", "not slow", *session.posargs)
