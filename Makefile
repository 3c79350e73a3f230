# make demo    install gniah into an environment of its own and run the whole job on a small real graph
# make test    install it, with the tools of development, into another, and run the tests
# make lint    check style and types there
# make clean   remove what these made
#
# PYTHON=/path/to/python chooses the interpreter; without it the first that works is taken.
# PYTEST_ARGS='-m "not slow"' and the like are passed on to pytest.

PYTHON ?=
PYTEST_ARGS ?=
CONSTRAINTS = .ci/constraints.txt
# `gniah` itself is a name-space package, which mypy does not take by that name when it is installed.
PACKAGES = gniah.records gniah.cypher gniah.loader gniah.generator gniah.evaluator
DEMO = gniah-quickstart

.DEFAULT_GOAL := help
.PHONY: help demo test lint clean dev-environment

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

# Shell code: sets $found to a Python of 3.11 or newer that runs and can make environments. A name on the PATH is not
# enough: version managers leave names there that only print an error.
define find_python
set -u; found=; wanted='$(PYTHON)'; \
if [ -n "$$wanted" ]; then set -- "$$wanted"; \
else set -- python3.13 python3.12 python3.11 python3 python python3.14; fi; \
for candidate in "$$@"; do \
    if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
    then found=$$candidate; break; fi; \
done; \
if [ -z "$$found" ]; then \
    echo "make: no Python of 3.11 or newer that can make environments was found (tried: $$*)" >&2; \
    echo "  to mend it: install one, with its venv package where that is separate, or give make PYTHON=/path/to/python" >&2; \
    exit 1; \
fi
endef

# Shell code: makes the environment $(1), unless it is there, whole, and of the same Python.
define make_environment
$(find_python); \
if [ ! -f $(1)/whole ] || \
    [ "$$($(1)/bin/python -VV 2>/dev/null)" != "$$("$$found" -VV)" ]; then \
    echo "making $(1) with $$("$$found" -V)"; \
    "$$found" -m venv --clear $(1) && touch $(1)/whole; \
fi
endef

# A wheel is built in build/, and what an earlier version left there would be packed too.
demo:
	@$(call make_environment,.venv-demo)
	@rm -rf build
	@.venv-demo/bin/python -m pip install --quiet --disable-pip-version-check .
	@.venv-demo/bin/gniah-gen quickstart --out $(DEMO)

# Not editable: tests run against what users get, where a file missing from the wheel is missed. Pyserini asks for torch,
# which nothing here needs.
dev-environment:
	@$(call make_environment,.venv-test)
	@rm -rf build
	@.venv-test/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) '.[dev,notebooks]'
	@.venv-test/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --no-deps pyserini

# -P keeps the checkout off the module path, where `import cypher` would work by accident.
test: dev-environment
	@.venv-test/bin/python -P -m pytest $(PYTEST_ARGS)

lint: dev-environment
	.venv-test/bin/python -m ruff check .
	.venv-test/bin/python -m ruff format --check .
	.venv-test/bin/python -P -m mypy $(PACKAGES:%=-p %)

clean:
	rm -rf .venv-demo .venv-test build dist gniah.egg-info $(DEMO) .mypy_cache .ruff_cache .pytest_cache .hypothesis
