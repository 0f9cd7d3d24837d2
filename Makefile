# Two commands: `make book` and `make test`. Both make .venv first if need be; `make help` says more.
#
# Tools are called as `.venv/bin/python -m …`, by relative path: the folder's own path may then hold spaces.

PYTHON      ?= python3
PIP_ARGS    ?=
PYTEST_ARGS ?=
INSTALLS_ARGS ?=
TORCH_INDEX ?=

py    := .venv/bin/python
stamp := .venv/.installed
torch := $(shell sed -n 's/^\(torch[<>=!~0-9., ]*\)$$/\1/p' requirements.txt)

.PHONY: help book test site pdf install installs clean distclean FORCE

help:
	@echo 'make book       install into .venv, run every chapter, render the book'
	@echo 'make test       install into .venv, bring the book up to date, run the tests'
	@echo 'make site       as make book, and pack it as _build/site.zip, to be read offline'
	@echo 'make pdf        as make book, and print the book as _build/book.pdf; needs Chromium'
	@echo 'make install    only make .venv and install'
	@echo 'make installs   try the library alone on the Pythons that are here, with lowest and newest dependencies'
	@echo 'make clean      remove what was built; .venv and your own runs/ stay'
	@echo 'make distclean  remove .venv too'
	@echo
	@echo 'PYTHON=python3.12   the Python that .venv is made with (3.10 or newer)'
	@echo 'TORCH_INDEX=ADDRESS take torch from this package index, for a CPU build without CUDA'
	@echo 'PIP_ARGS="…"        more arguments for pip, for example -c constraints.txt'
	@echo 'PYTEST_ARGS="…"     more arguments for pytest, for example -k sweep'
	@echo 'INSTALLS_ARGS="…"   more arguments for make installs, for example --only 3.13'

book: $(stamp)
	@$(py) -m ictd build

# The tests look at the built site, so it is brought up to date first; nothing changed, this takes seconds.
test: $(stamp)
	@$(py) -m ictd build
	@$(py) -m pytest $(PYTEST_ARGS)

site: $(stamp)
	@$(py) -m ictd site

# What printing needs beside the book's own requirements is installed when a PDF is first asked for.
pdf: $(stamp)
	@$(py) -c 'import playwright, pypdf' 2>/dev/null || $(py) -m pip install --quiet $(PIP_ARGS) -e '.[pdf]'
	@$(py) -m ictd pdf

install: $(stamp)

installs: $(stamp)
	@$(py) tests/installs.py $(if $(TORCH_INDEX),--torch-index '$(TORCH_INDEX)') $(INSTALLS_ARGS)

# The stamp holds the folder's path: an editable install knows its folder by its full path, so one that
# was moved is installed again. It is written last: an install that was cut short is taken up again.
# Only a pip of 25.3 or newer resolves without downloading, which the look ahead at torch relies on.
ifneq ($(shell cat $(stamp) 2>/dev/null),$(CURDIR))
$(stamp): FORCE
endif
$(stamp): requirements.txt pyproject.toml $(py)
	@$(py) -m pip --version >/dev/null 2>&1 || { rm -rf .venv && $(MAKE) --no-print-directory $(py); }
	@$(py) -m pip install --quiet --upgrade $(PIP_ARGS) 'pip>=25.3'
	@if [ -n '$(TORCH_INDEX)' ]; then \
	  echo 'Installing torch from the index given as TORCH_INDEX.'; \
	  $(py) -m pip install --index-url '$(TORCH_INDEX)' $(PIP_ARGS) '$(torch)'; \
	elif ! $(py) -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' \
	  && ! nvidia-smi >/dev/null 2>&1 \
	  && $(py) -m pip install --dry-run --quiet --report - $(PIP_ARGS) '$(torch)' 2>/dev/null \
	    | grep -q '"name": "nvidia'; then \
	  echo; \
	  echo 'pip is about to download torch with CUDA, several gigabytes, and no NVIDIA driver was found here.'; \
	  echo 'A CPU build of about 200 MB serves this book as well. To take it, stop now (Ctrl-C) and run'; \
	  echo; \
	  echo '    make $(or $(MAKECMDGOALS),book) TORCH_INDEX=ADDRESS'; \
	  echo; \
	  echo 'where ADDRESS is what pytorch.org/get-started shows after --index-url for Pip and CPU.'; \
	  if [ -t 0 ] && [ -t 1 ]; then echo 'Going on in 10 seconds.'; sleep 10; fi; \
	fi
	@echo 'Installing into .venv; the first time takes a few minutes.'
	@$(py) -m pip install --quiet $(PIP_ARGS) -r requirements.txt
	@pwd -P > $(stamp)

$(py):
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
	  echo 'Python 3.10 or newer is needed, and "$(PYTHON)" is not that.'; \
	  echo 'Name another with PYTHON=, for example: make book PYTHON=python3.12'; \
	  exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo '"$(PYTHON)" cannot make virtual environments: its modules venv and ensurepip are missing.'; \
	  echo 'On Debian or Ubuntu: apt install python3-venv'; \
	  exit 1; }
	@"$(PYTHON)" -m venv --clear .venv

clean:
	rm -rf _build build .pytest_cache .mypy_cache .ruff_cache .hypothesis ictd.egg-info
	find ictd tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv
