#!/usr/bin/env bash
# The tests in their short form: lints, host tests, then programs in machines.
# Clippy and the kernel are built beside the host tests, as crates that stand in a line leave CPUs idle;
# machines with one CPU run beside those with two, as both wait a lot. What measures a rate, a clock or a
# load comes last, and alone. What runs beside something else is printed when both have ended.
# Ends with one line: N passed, N failed.
set -euo pipefail
cd "$(dirname "$0")/.."
# What is built once needs no records of how to build it again.
if [ -n "${CI:-}" ]; then export CARGO_INCREMENTAL=0; fi
logs=build/test
rm -rf "$logs"
mkdir -p "$logs"

passed=0
failed=0
# Counts a step that passed or failed as a whole.
step() {
    local name=$1 began=$SECONDS
    shift
    if "$@"; then
        passed=$((passed + 1)) && echo "ok   $name ($((SECONDS - began)) s)"
    else
        failed=$((failed + 1)) && echo "FAIL $name ($((SECONDS - began)) s)"
    fi
}
# Adds up the lines `N passed...; N failed` of a suite that ended. One that failed without
# such a line counts as one failure.
count() {
    local log=$1 status=$2 good bad
    good=$({ grep -oE '[0-9]+ passed[,;]' "$log" || true; } | sum)
    bad=$({ grep -oE '[,;] [0-9]+ failed' "$log" || true; } | sum)
    if [ "$status" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
    passed=$((passed + good))
    failed=$((failed + bad))
}
suite() {
    local name=$1 log=$logs/suite status=0 began=$SECONDS
    shift
    echo "---- $name"
    "$@" 2>&1 | tee "$log" || status=$?
    count "$log" "$status"
    echo "---- took $((SECONDS - began)) s"
}
# Waits for what runs beside something else, and shows and counts what it wrote.
beside() {
    local log=$logs/$1 status=0
    wait "$2" || status=$?
    cat "$log"
    count "$log" "$status"
}
# Adds up the first number of each line.
sum() { tr -cd '0-9\n' | awk '{ total += $1 } END { print total + 0 }'; }

# In a directory of its own: two cargos do not build in one.
clippy() {
    export CARGO_TARGET_DIR=target/clippy
    step "clippy on the host's crates" cargo clippy -q --all-targets -- -D warnings
    # shellcheck disable=SC2046 # one word per crate
    step "clippy on the kernel" tools/kernel.sh clippy -q \
        $(awk -F'"' '/^name = / { print "-p " $2; nextfile }' kernel/*/Cargo.toml) -- -D warnings
    echo "$passed passed, $failed failed"
}
kernel() {
    step "the kernel builds" tools/kernel.sh build -q -p image --release
    step "functions fit on a kernel stack" target/debug/tidy \
        --frames target/x86_64-unknown-none/release/sietch-kernel
    echo "$passed passed, $failed failed"
}

step "tidy: layers, unsafe and stubs" cargo run -q -p tidy
step "rustfmt" cargo fmt --all --check
(passed=0 failed=0 && clippy) >"$logs/clippy" 2>&1 &
clippy=$!
(passed=0 failed=0 && kernel) >"$logs/kernel" 2>&1 &
kernel=$!
suite "unit and simulation tests" cargo test -q --no-fail-fast
beside clippy "$clippy"
beside kernel "$kernel"

step "the tests in machines build" cargo build -q -p cli -p vm-tests
vm_tests=target/debug/vm-tests
"$vm_tests" --cpus 1 --host busy >"$logs/single" 2>&1 &
single=$!
suite "programs in machines, two CPUs" "$vm_tests" --cpus 2 --host busy
echo "---- programs in machines, one CPU"
beside single "$single"
for cpus in 2 1; do
    suite "what wants a quiet host, CPUs: $cpus" "$vm_tests" --cpus "$cpus" --host quiet
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
