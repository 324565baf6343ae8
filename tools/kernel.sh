#!/usr/bin/env bash
# Runs a cargo command on the kernel's crates for the bare machine:
#   tools/kernel.sh build -p image --release
#
# With rustup the target's core library is there already (rust-toolchain.toml).
# With Debian's compiler it is built from the packaged sources.
set -euo pipefail
cd "$(dirname "$0")/.."
target=x86_64-unknown-none

command=$1
shift
core=$(rustc --print sysroot)/lib/rustlib/$target/lib
if compgen -G "$core/libcore-*.rlib" >/dev/null; then
    exec cargo "$command" --target "$target" "$@"
fi
sources=$(rustc --print sysroot)/lib/rustlib/src/rust/library
if ! [ -d "$sources" ]; then
    echo "The Rust target $target is missing: run 'rustup target add $target' or install rust-web-src." >&2
    exit 1
fi
export RUSTC_BOOTSTRAP=1
export CARGO_TARGET_X86_64_UNKNOWN_NONE_LINKER=ld
exec cargo "$command" --target "$target" -Zbuild-std=core,alloc,compiler_builtins \
    -Zbuild-std-features=compiler-builtins-mem \
    --config 'target.x86_64-unknown-none.rustflags=["-Clinker-flavor=ld"]' "$@"
