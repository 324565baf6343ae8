#!/usr/bin/env bash
# The long tests: the monkey's ten million calls, a minute's storm of signals, the clocks of 64
# machines, machines under KVM, all programs of docs/programs.md, a million requests to Redis, other
# programs' own tests on libumem.so and libsietch.so, ten minutes for each fuzzer, commands that are
# killed at each of their steps, and ten thousand simulated transfers.
# Machines run one after another, and beside them as many fuzzers as there are CPUs.
# Each step's output is in build/long. Ends with one line: N passed, N failed.
set -uo pipefail
cd "$(dirname "$0")/.."

export FUZZ_SECONDS=600
export LOGS=build/long
rm -rf "$LOGS"
mkdir -p "$LOGS"

# Runs one step that passes or fails as a whole; a failed one shows how it ended.
step() {
    local name=$1 log=$LOGS/${1//[^a-zA-Z0-9]/-}.log began=$SECONDS verdict=ok
    shift
    "$@" >"$log" 2>&1 || verdict=FAIL
    printf '%-4s %s (%d s)\n' "$verdict" "$name" $((SECONDS - began)) | tee -a "$LOGS/verdicts"
    [ "$verdict" = ok ] || { tail -n 30 "$log"; return 1; }
}
export -f step

machines() {
    local vm_tests="target/release/vm-tests --long" cpus
    for cpus in 1 2; do
        step "the monkey makes ten million calls, CPUs: $cpus" $vm_tests --cpus $cpus monkey
        step "Redis leaves nothing behind a million requests, CPUs: $cpus" \
            $vm_tests --cpus $cpus "leaves no frame"
        step "a minute under signals loses no byte, CPUs: $cpus" $vm_tests --cpus $cpus storm
        step "no call of thousands keeps the CPU, CPUs: $cpus" $vm_tests --cpus $cpus "no call keeps"
        step "much passes through a machine whole, CPUs: $cpus" $vm_tests --cpus $cpus "much passes"
        step "what was promised outlives a power cut, CPUs: $cpus" \
            $vm_tests --cpus $cpus "outlives a power cut"
        step "disks that fail lose nothing, CPUs: $cpus" $vm_tests --cpus $cpus "is EIO for"
        step "machines under KVM, CPUs: $cpus" $vm_tests --cpus $cpus "under KVM"
        step "programs run as they are installed, and from images, CPUs: $cpus" \
            $vm_tests --cpus $cpus "as it is installed" "beside the host's files"
    done
    step "64 machines on a busy host keep time" $vm_tests --cpus 1 "clocks of machines"
    step "the frame allocator in a billion random operations" \
        env FRAMES_OPS=1000000000 cargo test -q --release -p frames --test oracle
    for suite in redis python sqlite node nginx; do
        step "on libumem.so: $suite" tools/umem-suites.sh "$suite"
    done
    for suite in redis memcached; do
        step "on each network of a machine: $suite" tools/bypass-suites.sh "$suite"
    done
    step "SQLite's tests of crashes on a volume" tools/sqlite-crash.sh
    step "power cuts of up to three operations" cargo run -q --release -p powercut -- sequences
    step "power cuts of long walks" cargo run -q --release -p powercut -- walks 100
    step "power cuts of requests" cargo run -q --release -p powercut -- requests 30000
    for seed in 1 2 3 4 5 6 7 8 9 10; do
        step "a day of simulated time with a bad disk, seed $seed" cargo run -q --release -p powercut -- day $seed
    done
    step "planted bugs are found" cargo run -q --release -p powercut -- plants
    step "faults at each step and each byte" \
        cargo test -q --release -p cli --test faults -- --ignored
    step "simulated transfers with a fifth of packets lost" \
        env SIM_TRANSFERS=10000 cargo test -q --release -p sim
}

fuzzers() {
    step "the fuzzers build" cargo +nightly fuzz build || return
    cargo +nightly fuzz list | xargs -P "$(nproc)" -I TARGET bash -c 'step \
        "the fuzzer TARGET finds nothing" \
        cargo +nightly fuzz run TARGET -- -max_total_time=$FUZZ_SECONDS'
}

step "the kernel builds" tools/kernel.sh build -q -p image --release
step "the command and the tests build" cargo build -q --release -p cli -p vm-tests
fuzzers &
machines
wait

passed=$(grep -c '^ok' "$LOGS/verdicts")
failed=$(grep -c '^FAIL' "$LOGS/verdicts")
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
