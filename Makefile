# make book · make test · make lab · make clean
PYTHON ?= python3
BIN := .venv/bin
ARGS ?=

.PHONY: book test lab tidy lock calibrate clean

book: .venv/ready
	@$(BIN)/k3 build $(ARGS)

test: .venv/ready
	@$(BIN)/python tools/system_packages.py
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest $(ARGS)

lab: .venv/ready
	@$(BIN)/jupyter lab $(ARGS) notebooks

# One formatting for code and notebooks.
tidy: .venv/ready
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/python tools/normalise_notebooks.py

# Resolve the dependencies again; the lock holds hashes and no addresses.
lock: .venv/ready
	@$(BIN)/python -m uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --no-emit-index-url --no-emit-find-links -q -o requirements.lock

# Fit the speed model again and store it with the data: after a change of measurements or of the model.
calibrate: .venv/ready
	@$(BIN)/python -m k3lib.calibrate

.venv/ready: requirements.lock pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py

clean:
	rm -rf _build
