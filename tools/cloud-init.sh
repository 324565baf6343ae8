#!/usr/bin/env bash
# Builds the program that reads what a cloud says (user/cloud-init), static, for `sietch build` to pack.
set -euo pipefail
cd "$(dirname "$0")/.."

PATH=$PATH:$HOME/.cargo/bin
# A folder of the target's own, so that no other build puts a dynamic one in its place.
# Small, for it is in each image and runs for milliseconds.
settings=()
for setting in 'opt-level="s"' 'lto="off"' codegen-units=16 debug=false; do
    settings+=(--config "profile.release.$setting")
done
exec cargo rustc -q --release "${settings[@]}" --target x86_64-unknown-linux-gnu -p cloud-init --bin sietch-cloud-init "$@" -- \
    -C target-feature=+crt-static -C strip=symbols
