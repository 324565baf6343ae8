#!/usr/bin/env bash
# The long tests: the monkey's ten million calls, a minute's storm of signals, a million
# requests to Redis, ten minutes for each fuzzer, and ten thousand simulated transfers.
# Ends with one line: N passed, N failed.
set -uo pipefail
cd "$(dirname "$0")/.."

fuzz_seconds=600
passed=0
failed=0
step() {
    local name=$1
    shift
    echo "---- $name"
    if "$@"; then
        passed=$((passed + 1)) && echo "ok   $name"
    else
        failed=$((failed + 1)) && echo "FAIL $name"
    fi
}

step "the kernel builds" tools/kernel.sh build -q -p image --release
step "the command builds" cargo build -q --release -p cli -p vm-tests
step "the monkey makes ten million calls, one CPU" target/release/vm-tests --long --cpus 1 monkey
step "the monkey makes ten million calls, two CPUs" target/release/vm-tests --long --cpus 2 monkey
step "Redis leaves nothing behind a million requests, one CPU" \
    target/release/vm-tests --long --cpus 1 "leaves no frame"
step "Redis leaves nothing behind a million requests, two CPUs" \
    target/release/vm-tests --long --cpus 2 "leaves no frame"
step "the frame allocator in a billion random operations" \
    env FRAMES_OPS=1000000000 cargo test -q --release -p frames --test oracle
step "a minute under signals loses no byte, one CPU" target/release/vm-tests --long --cpus 1 storm
step "a minute under signals loses no byte, two CPUs" target/release/vm-tests --long --cpus 2 storm
step "simulated transfers with a fifth of packets lost" \
    env SIM_TRANSFERS=10000 cargo test -q --release -p sim
if command -v cargo-fuzz >/dev/null; then
    for target in $(cd fuzz && cargo +nightly fuzz list); do
        step "the fuzzer $target finds nothing" \
            cargo +nightly fuzz run "$target" -- -max_total_time=$fuzz_seconds
    done
else
    echo "The fuzzers need cargo-fuzz: run 'cargo install cargo-fuzz' with a nightly toolchain."
    failed=$((failed + 1))
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
