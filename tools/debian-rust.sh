#!/usr/bin/env bash
# Gives Debian's Rust compiler the kernel's target, as `rustup target add` gives it to
# rustup's: builds its core library from the packaged sources and lays it, and LLVM's
# linker, where the compiler looks. Runs as root, from tools/setup.sh.
set -euo pipefail
target=x86_64-unknown-none
rustlib=$(rustc --print sysroot)/lib/rustlib
linker=$rustlib/x86_64-unknown-linux-gnu/bin/rust-lld
if ! [ -e "$linker" ]; then
    mkdir -p "$(dirname "$linker")"
    ln -s "$(command -v lld)" "$linker"
fi
if compgen -G "$rustlib/$target/lib/libcore-*.rlib" >/dev/null; then exit 0; fi

echo "sietch set-up: building the core library for $target"
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
mkdir "$folder/src"
printf '[package]\nname = "empty"\nedition = "2024"\n[lib]\n[workspace]\n' >"$folder/Cargo.toml"
printf '#![no_std]\n' >"$folder/src/lib.rs"
(cd "$folder" && RUSTC_BOOTSTRAP=1 cargo build -q --release --target "$target" \
    -Zbuild-std=core,alloc,compiler_builtins -Zbuild-std-features=compiler-builtins-mem)
mkdir -p "$rustlib/$target/lib"
for library in core alloc compiler_builtins; do
    cp "$folder/target/$target/release/deps/lib$library"-*.rlib "$rustlib/$target/lib/"
done
