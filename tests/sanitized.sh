#!/bin/bash
# The compiled modules with AddressSanitizer, in build/sanitized, and the tests that change memory under it: edits,
# blocks, sessions, files, tapes, branch and bound, and calls that a signal ends (`make check-sanitizer`; half an hour on
# two cores). There the processes of branch and bound have no limit of address space: the sanitizer reserves terabytes.
# PYTHON is the interpreter with copter's requirements, SHARE the part of the campaigns of tests/adversary/long_run.py.
set -u
cd "$(dirname "$0")/.."
PYTHON=$(realpath -s "${PYTHON:-.venv/bin/python}") SHARE=${SHARE:-0.02}
ROOMS=(tests/copter/model tests/copter/problem tests/copter/storage tests/copter/session
  tests/copter/methods/blocks tests/copter/methods/simplex tests/copter/methods/integer)
CAMPAIGNS=("interrupted at" "ended by a timer" "edited sessions" "recorded while")

library=$(${CC:-gcc} -print-file-name=libasan.so)
cxx=$(${CC:-gcc} -print-file-name=libstdc++.so.6)  # loaded with it, so that it finds what it watches of exceptions
[ -f "$library" ] || { echo "check-sanitizer needs gcc with libasan (Debian: apt-get install gcc)" >&2; exit 3; }
mkdir -p build/sanitized
find build/sanitized -name '*.py*' -not -path '*/build/*' -type f -delete
git ls-files -z copter frontends benchmarks tests docs setup.py pyproject.toml README.md CHANGELOG.md Makefile |
  tar --null -cf - -T - | tar -xf - -C build/sanitized
cd build/sanitized || exit 1
sed -i 's/^    if memory < float("inf"):$/    if False:/' copter/highs/children.py
grep -q '^    if False:$' copter/highs/children.py || { echo "the limit of address space is elsewhere now" >&2; exit 1; }
CFLAGS="-fsanitize=address -fno-omit-frame-pointer -g1" LDFLAGS="-fsanitize=address" \
  "$PYTHON" setup.py --quiet build_ext --inplace || exit 1

# Python's own objects come from malloc too, so that they are watched; a report goes to a file, from a child too.
rm -f report.*
watched() {
  LD_PRELOAD="$library $cxx" ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:allocator_may_return_null=1:log_path=$PWD/report \
    PYTHONMALLOC=malloc OMP_NUM_THREADS=2 PYTHONPATH=$PWD:$PWD/frontends:$PWD/benchmarks "$PYTHON" "$@"
}
failed=0
for room in "${ROOMS[@]}"; do
  echo "== $room"
  watched -m pytest -q -p no:cacheprovider -m "not long and not slow" "$room" || failed=1
done
for campaign in "${CAMPAIGNS[@]}"; do
  watched -m tests.adversary.long_run --only "$campaign" --share "$SHARE" || failed=1
done
# A process whose memory a test limits cannot have the sanitizer's own either; that is no report.
if grep -l "ERROR: AddressSanitizer: " report.* 2>/dev/null; then
  cat report.*
  failed=1
else
  echo "AddressSanitizer reported nothing"
fi
exit $failed
