#!/usr/bin/env bash
# The tests in their short form: lints, host tests, then programs in machines.
# Ends with one line: N passed, N failed.
set -euo pipefail
cd "$(dirname "$0")/.."
log=build/test.log
mkdir -p build
: >"$log"

passed=0
failed=0
# Runs one step that passes or fails as a whole.
step() {
    local name=$1
    shift
    if "$@"; then
        passed=$((passed + 1)) && echo "ok   $name"
    else
        failed=$((failed + 1)) && echo "FAIL $name"
    fi
}
# Runs a command that prints `N passed...; N failed` lines, and adds them up. A
# command that fails without such a line counts as one failure.
suite() {
    local name=$1 status=0 good bad
    shift
    echo "---- $name"
    "$@" 2>&1 | tee "$log" || status=$?
    good=$({ grep -oE '[0-9]+ passed[,;]' "$log" || true; } | sum)
    bad=$({ grep -oE '[,;] [0-9]+ failed' "$log" || true; } | sum)
    if [ "$status" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
    passed=$((passed + good))
    failed=$((failed + bad))
}
# Adds up the first number of each line.
sum() { tr -cd '0-9\n' | awk '{ total += $1 } END { print total + 0 }'; }

step "tidy: layers, unsafe and stubs" cargo run -q -p tidy
step "rustfmt" cargo fmt --all --check
step "clippy on the host's crates" cargo clippy -q --all-targets -- -D warnings
kernel_crates=$(awk -F'"' '/^name = / { print "-p " $2; nextfile }' kernel/*/Cargo.toml)
# shellcheck disable=SC2086 # one word per crate
step "clippy on the kernel" tools/kernel.sh clippy -q $kernel_crates -- -D warnings
suite "unit and simulation tests" cargo test -q --no-fail-fast
step "the kernel builds" tools/kernel.sh build -q -p image --release
suite "programs in machines, two CPUs" cargo run -q -p vm-tests -- --cpus 2
suite "programs in machines, one CPU" cargo run -q -p vm-tests -- --cpus 1

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
