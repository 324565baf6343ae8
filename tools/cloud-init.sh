#!/usr/bin/env bash
# Builds the program that reads what a cloud says (user/cloud-init), static, for `sietch build` to pack.
set -euo pipefail
cd "$(dirname "$0")/.."

PATH=$PATH:$HOME/.cargo/bin
# A folder of the target's own, so that no other build puts a dynamic one in its place.
exec cargo rustc -q --release --target x86_64-unknown-linux-gnu -p cloud-init --bin sietch-cloud-init "$@" -- \
    -C target-feature=+crt-static
