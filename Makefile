# The commands that people and CI use; what each does is in README.md. Every one works from a bare checkout.
PYTHON_IN_VENV := .venv/bin/python
export PYTHONUNBUFFERED := 1

.PHONY: run test bench check openapi environment environment-dev

run: environment
	@exec $(PYTHON_IN_VENV) manage.py up

test: environment-dev
	@exec sh tools/test $(TESTS)

bench: environment-dev
	@exec $(PYTHON_IN_VENV) -m bench

check: environment-dev
	@exec sh tools/check

openapi: environment-dev
	@exec $(PYTHON_IN_VENV) manage.py spectacular --validate --file docs/openapi.yaml

environment:
	@tools/bootstrap base

environment-dev:
	@tools/bootstrap dev
