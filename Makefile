# Every target sets up .venv by itself and reuses it. Needs python3 (3.10 to 3.13), pip and make.
VENV := .venv
PYTHON := $(VENV)/bin/python
INSTALLED := $(VENV)/installed

.PHONY: demo test test-fast test-all check lint types wheel lowest bench docs clean

demo: $(INSTALLED)
	$(VENV)/bin/sopool demo

test: check
	$(PYTHON) -m pytest -n auto --dist loadfile -q

# One case of every test, and none that starts a process: for daily work.
test-fast: $(INSTALLED)
	SOPOOL_TEST_FAST=1 $(PYTHON) -m pytest -n auto --dist loadfile -q -rN tests

test-all: check lowest
	SOPOOL_TEST_ALL=1 $(PYTHON) -m pytest -n auto --dist loadfile

lint: $(INSTALLED)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types: $(INSTALLED)
	$(PYTHON) -m mypy

# All but the tests, at the same time: they take unequal time, and each keeps one core busy.
check: $(INSTALLED)
	$(MAKE) --no-print-directory --jobs 4 wheel types docs lint

wheel: $(INSTALLED)
	$(PYTHON) tests/check_wheel.py

lowest: $(INSTALLED)
	$(PYTHON) tests/check_lowest.py

# Readouts and training, beside other ways to do the same: docs/performance.md. A few minutes on two cores.
bench: $(INSTALLED)
	$(PYTHON) -m benchmarks.speed

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict
	@echo "The documentation is in site/index.html"

clean:
	rm -rf $(VENV) build dist site

$(INSTALLED): pyproject.toml constraints.txt
	python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@
