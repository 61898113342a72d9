# Every target sets up .venv by itself and reuses it. Needs python3 (3.10 to 3.13), pip and make.
VENV := .venv
PYTHON := $(VENV)/bin/python
INSTALLED := $(VENV)/installed

.PHONY: demo test test-all lint types unit wheel bench docs clean

demo: $(INSTALLED)
	$(VENV)/bin/sopool demo

test: lint types unit docs wheel

test-all: lint types docs wheel
	SOPOOL_TEST_ALL=1 $(PYTHON) -m pytest -n auto

lint: $(INSTALLED)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types: $(INSTALLED)
	$(PYTHON) -m mypy

unit: $(INSTALLED)
	$(PYTHON) -m pytest -n auto -q

wheel: $(INSTALLED)
	$(PYTHON) tests/check_wheel.py

bench: $(INSTALLED)
	$(PYTHON) benchmarks/readouts_cpu.py

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict
	@echo "The documentation is in site/index.html"

clean:
	rm -rf $(VENV) build dist site

$(INSTALLED): pyproject.toml constraints.txt
	python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@
