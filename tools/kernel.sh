#!/usr/bin/env bash
# Runs a cargo command on the kernel's crates for the bare machine:
#   tools/kernel.sh build -p image --release
# `build` alone takes the profile kdev: functions that are not optimised at all need more stack
# than the kernel's threads have.
set -euo pipefail
cd "$(dirname "$0")/.."
target=x86_64-unknown-none
if ! compgen -G "$(rustc --print sysroot)/lib/rustlib/$target/lib/libcore-*.rlib" >/dev/null; then
    echo "The Rust target $target is missing: run 'rustup target add $target', or 'make setup' as root on Debian." >&2
    exit 1
fi
command=$1
shift
if [ "$command" = build ] && ! [[ " $* " == *" --release "* || " $* " == *" --profile"* ]]; then
    set -- --profile kdev "$@"
fi
exec cargo "$command" --target "$target" "$@"
