# Every command of the project. Needs Python >= 3.11, make and git; the rest is installed into .venv.
#
#   PYTHON       the interpreter that makes .venv            make test PYTHON=python3.12
#   TORCH_INDEX  a package index to take torch from, alone    TORCH_INDEX=<url of PyTorch's CPU index> make site
#                On Linux the default index serves the CUDA build (gigabytes). The CPU build is enough here;
#                PyTorch's installation page names the index that has it. CI sets this variable.
#   PORT         where `make serve` listens                  make serve PORT=8001
#   JOBS         processes for the test suite; default:      make test JOBS=1
#                three, for two cores: some tests wait
#   ARGS         more arguments for pytest                   make test ARGS="-k layers"
#                or, in `make bench`, for the benchmarks     make bench ARGS=--quick
#                or, in `make record`, for `litbook record`  make record ARGS=--approve

PYTHON ?= python3
TORCH_INDEX ?=
PORT ?= 8000
ARGS ?=
JOBS ?= 3

VENV := .venv
PY := $(VENV)/bin/python
LITBOOK := $(PY) -m litbook
PIP := $(PY) -m pip --disable-pip-version-check --no-input
STAMP := $(VENV)/.stamp
# A worker takes whole files, so that what a file sets up is set up once. Not `loadgroup`: pytest-xdist 3.8 writes the
# group where pytest 9.2 no longer looks, and every test is a group of its own.
WORKERS := $(if $(filter-out 1,$(JOBS)),-n $(JOBS) --dist loadfile --no-loadscope-reorder)

# Material for MkDocs prints a notice about MkDocs 2 on every build; pyproject.toml holds MkDocs below 2.
export NO_MKDOCS_2_WARNING := true

# Images of containers often set it. Each of the suite's many processes would compile the whole engine anew.
unexport PYTHONDONTWRITEBYTECODE

# $(call beside_types,COMMAND): mypy is busy on one core, so COMMAND runs beside it; both must succeed.
define beside_types
@mkdir -p build; (set -x; $(PY) -m mypy) >build/types 2>&1 & types=$$!; \
  (set -x; $(1)); status=$$?; wait $$types || status=2; cat build/types; exit $$status
endef

NOT_SLOW := $(if $(CI),,-m 'not slow')
# The Python files that differ from where this branch left main, the new ones too.
CHANGED = $(shell { git diff --name-only --diff-filter=d $$(git merge-base HEAD main || echo HEAD); \
	git ls-files --others --exclude-standard; } 2>/dev/null | grep '\.py$$' | sort -u)

# "yes" when .venv runs and its litbook is this tree's: false after an upgrade of Python or a move of the folder.
WORKS := $(shell $(PY) -c 'import importlib.util, os, pip; \
	spec = importlib.util.find_spec("litbook"); \
	print("yes" if os.path.samefile(spec.origin, "tools/litbook/__init__.py") else "no")' 2>/dev/null)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: release help site test quick check style coverage size words build serve record unbacked unrun mutants trial pins bench clean FORCE

help:  ## list the targets
	@echo 'make TARGET, where TARGET is one of'
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1|\2/p' Makefile | awk -F'|' '{ printf "%-8s %s\n", $$1, $$2 }'

site: build  ## run the lectures, build site/, say how to open it
	@echo
	@echo 'The site is built. Open it with'
	@echo '    $(PY) -m http.server -d site      and go to localhost:8000'
	@echo 'or open the file'
	@echo '    $(CURDIR)/site/index.html'

test: style  ## lint, types, strict docs build, the whole test suite; what is marked slow in CI only
	$(call beside_types,$(PY) -m tests.building site build/records)
	LITBOOK_SITE='$(CURDIR)/site' LITBOOK_RECORDS='$(CURDIR)/build/records' $(PY) -m pytest $(WORKERS) $(NOT_SLOW) $(ARGS)

quick: $(STAMP)  ## about a minute: lint of what changed since main, types, unit tests
	$(if $(CHANGED),$(PY) -m ruff check --force-exclude $(CHANGED))
	$(if $(CHANGED),$(PY) -m ruff format --check --force-exclude $(CHANGED))
	$(call beside_types,$(PY) -m pytest tests/unit $(WORKERS) -m "not slow" $(ARGS))

check: style  ## lint, format and types, without changing a file
	$(PY) -m mypy

style: $(STAMP)
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) tools/notes.py

# The suite as in `make test`; what failed there fails here too, after the report.
coverage: $(STAMP)  ## which lines and branches of the engine the suite reaches, also through child processes
	rm -rf build/coverage && mkdir -p build/coverage
	$(PY) -m coverage run -m pytest $(WORKERS) $(NOT_SLOW) $(ARGS); status=$$?; \
	  $(PY) -m coverage combine --quiet && $(PY) -m coverage report && \
	  $(PY) -m coverage html --quiet --directory build/coverage/html && \
	  echo 'line by line: build/coverage/html/index.html' && exit $$status

size:  ## count the engine: code, functions, what is used once, circles of imports
	@'$(PYTHON)' tools/size.py

words: $(STAMP)  ## list the engine's words that readers see, for translators: tools/litbook/translations/locale/litbook.pot
	$(PY) -m babel.messages.frontend -q extract -F pyproject.toml -k gettext_noop --omit-header --add-location=file -o tools/litbook/translations/locale/litbook.pot tools

build: $(STAMP)  ## what `site` does, without the last words
	$(PY) -m mkdocs build --strict

# Saving a lecture runs it, first the part that the browser shows, which then shows the page anew.
serve: $(STAMP)  ## live preview: saving a lecture runs it, first the part that is looked at
	$(LITBOOK) serve --port $(PORT)

# `make record` refuses where a value differs from the recording, and shows the difference. When the new value is
# right: make record ARGS=--approve. On a machine with a GPU this records the GPU; ARGS="--device cpu" the CPU.
record: $(STAMP)  ## keep what the lectures say on this device as recordings, and refresh the README's badge
	$(LITBOOK) record $(ARGS)
	$(LITBOOK) badge docs/images/claims.svg

unbacked: $(STAMP)  ## list the numbers in prose that are neither computed nor cited
	$(LITBOOK) check --select unbacked,forgotten-f

unrun: $(STAMP)  ## run the lectures; list claims that neither this run nor a recording has executed
	$(LITBOOK) check --select never-ran,waits,older

mutants: $(STAMP)  ## change every claim a little, and list those that hold all the same (minutes)
	$(LITBOOK) check --select mutant $(ARGS)

# After a change in pyproject.toml or constraints.txt. Makes an environment with uv in build/ on first use.
pins:  ## make requirements.txt anew: what is installed, each file by its hash
	PYTHON='$(PYTHON)' .ci/pins

# Wants a quiet machine and many minutes. Makes an environment with edtrace in build/ on first use.
# Downloads what a site needs, into a folder of its own; CI runs it on each push.
trial:  ## install the wheel where nothing is, begin a book, and build it with MkDocs and with ProperDocs
	PYTHON='$(PYTHON)' .ci/trial properdocs

release: $(STAMP)  ## wheel, sdist and notes of this version into build/release; ARGS=--tag tags it
	$(PY) tools/release.py $(ARGS)

bench: $(STAMP)  ## measure speed and sizes, write docs/benchmarks.md, fail where a limit is passed
	$(PY) -m benchmarks $(ARGS)

clean:  ## remove .venv, the site and every cache
	rm -rf $(VENV) site build docs/lectures docs/assets/litbook .litbook tools/*.egg-info
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp says "complete". It goes before anything changes and comes back last, so that what was interrupted
# is seen as such: without a stamp .venv is made anew, with an old one it is brought up to date.
# First all that requirements.txt has, each file by its hash; setuptools is in it, and --no-build-isolation builds with
# that. torch next, alone and without its dependencies: only torch may come from TORCH_INDEX, all else comes from the
# default index, and so does what a CUDA build of torch needs beside it. pip names what is missing then.
$(STAMP): pyproject.toml constraints.txt requirements.txt $(if $(filter yes,$(WORKS)),,FORCE)
	@command -v '$(PYTHON)' >/dev/null || { \
	  echo 'There is no $(PYTHON). Install Python 3.11 or later, or name one: make PYTHON=/path/to/python3' >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is $$('$(PYTHON)' --version 2>&1); Python 3.11 or later is needed." >&2; \
	  echo 'Name another one: make PYTHON=python3.12' >&2; exit 1; }
	@if [ -e $(STAMP) ] && $(PY) -m pip --version >/dev/null 2>&1; then \
	  rm -f $(STAMP); \
	else \
	  '$(PYTHON)' -c 'import venv, ensurepip' 2>/dev/null || { \
	    echo '$(PYTHON) has no venv module. On Debian and Ubuntu: apt install python3-venv' >&2; exit 1; }; \
	  echo '$(PYTHON) -m venv --clear $(VENV)'; \
	  '$(PYTHON)' -m venv --clear $(VENV); \
	fi
	$(PIP) install -q --require-hashes --no-deps -r requirements.txt
	$(PIP) install -q -c constraints.txt --no-deps $(if $(TORCH_INDEX),--index-url '$(TORCH_INDEX)') torch
	$(PIP) install -q -c constraints.txt torch
	$(PIP) install -q --no-deps --no-build-isolation -e .
	$(PIP) check
	@touch $(STAMP)
