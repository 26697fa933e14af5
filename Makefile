# Everything runs in .venv, which is made on first use. Only python3 (3.11 or newer) and make are needed.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-docs test-peers test-ray test-browser test-video test-wheel docs bench bench-learning torture torture-sweep evidence evidence-figures check format clean

setup: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mbdp needs Python 3.11 or newer, this is " + sys.version)'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,report]'
	touch $@

demo: setup
	$(BIN)/python examples/demo.py

# Tests compile thousands of tiny programs: without XLA's optimisations they take a third less time.
test: check
	XLA_FLAGS=--xla_backend_optimization_level=0 $(BIN)/python -m pytest --numprocesses auto --durations 15

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# What needs torch, W&B or MLflow runs in an environment of its own: none is part of the default install.
test-peers: .venv-peers/installed
	.venv-peers/bin/python -m pytest tests/peers

# mbrl asks for much that nothing here uses, so it comes without its dependencies, beside the few that it imports.
.venv-peers/installed: pyproject.toml constraints.txt constraints-peers.txt
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --constraint constraints-peers.txt --editable '.[dev,onnx,sb3,sbx,wandb,mlflow,minari]' onnx hydra-core sb3-contrib termcolor tqdm
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-peers.txt --no-deps mbrl
	touch $@

# The report and the documentation in a real browser: Debian's Chromium, which is installed if it is missing and we may.
test-browser: .venv/browser docs
	command -v chromedriver > /dev/null || { test "$$(id -u)" = 0 && apt-get update -qq && \
	  apt-get install -qq --no-install-recommends chromium chromium-driver fonts-dejavu-core > /dev/null; } || \
	  { echo "make test-browser needs Chromium: apt-get install chromium chromium-driver"; exit 1; }
	$(BIN)/python -m pytest tests/browser

.venv/browser: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt selenium
	touch $@

# Videos drawn without a screen, and a window on a virtual one: Debian's packages are installed if missing and we may.
test-video: .venv/video
	{ command -v Xvfb && ldconfig -p | grep -q libEGL_mesa && ldconfig -p | grep -q libOSMesa; } > /dev/null || \
	  { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq --no-install-recommends \
	  xvfb libegl1 libegl-mesa0 libopengl0 libgl1-mesa-dri libosmesa6 > /dev/null; } || \
	  { echo "make test-video needs: apt-get install xvfb libegl1 libegl-mesa0 libopengl0 libgl1-mesa-dri libosmesa6"; exit 1; }
	$(BIN)/python -m pytest tests/video

.venv/video: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[video]'
	touch $@

# Sweeps on a real Ray cluster, in an environment of its own: Ray is never part of the default install.
test-ray: .venv-ray/installed
	.venv-ray/bin/python -m pytest tests/ray

.venv-ray/installed: pyproject.toml constraints.txt constraints-ray.txt
	test -x .venv-ray/bin/python || $(PYTHON) -m venv .venv-ray
	.venv-ray/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --constraint constraints-ray.txt --editable '.[dev,ray]'
	touch $@

# The commands of README and docs, carried out one after the other as a reader would: some minutes.
test-docs: setup
	$(BIN)/python -m pytest tests/documents

# The documentation as a site, site/index.html: in an environment of its own, and a warning is an error.
# The variable silences the notice about the end of life of Material for MkDocs in May 2027.
docs: .venv-docs/installed
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs build --strict --quiet
	@echo "site/index.html"

.venv-docs/installed: constraints-docs.txt
	test -x .venv-docs/bin/python || $(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-docs.txt mkdocs-material 'mkdocstrings[python]'
	touch $@

# The wheel in an empty environment, away from the clone.
test-wheel: setup
	$(BIN)/python -m pytest tests/wheel

# Speed against the peers, and what a run costs where no torch is installed, which tensorboardX would import: about half
# an hour on two cores with nothing else to do.
bench: setup .venv-peers/installed
	.venv-peers/bin/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.run_cost
	$(BIN)/python -m benchmarks.tables

# Time until Hopper-v5 is learned, for us and for peers: up to an hour of one core for each of four systems.
bench-learning: .venv-peers/installed
	.venv-peers/bin/python -m benchmarks.time_to_return

# Fifty times kill -9, resumed each time: about ten minutes.
torture: setup
	$(BIN)/python -m benchmarks.torture

# Two hundred tiny runs of a sweep, whose workers are killed at random.
torture-sweep: setup
	$(BIN)/python -m benchmarks.sweep_torture

# The project's own experiments (specs/evidence), weeks of one core: after any interruption the same command goes on.
# `make evidence CORES=4`, or in the background: `make evidence BACKGROUND=1`.
CORES ?= 1
evidence: setup
ifdef BACKGROUND
	mkdir -p runs
	nohup $(BIN)/python -m benchmarks.evidence --workers $(CORES) > runs/evidence.log 2>&1 & \
	  echo "process $$!, which prints to runs/evidence.log; it ends, with checkpoints, after: kill $$!"
else
	$(BIN)/python -m benchmarks.evidence --workers $(CORES)
endif

# What there is of them so far, from runs/evidence to results/evidence, and the figures.
evidence-figures: setup
	$(BIN)/python -m benchmarks.evidence --only-draw

clean:
	rm -rf .venv .venv-peers .venv-ray .venv-docs site .mypy_cache .pytest_cache .ruff_cache .hypothesis
