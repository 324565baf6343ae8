#!/usr/bin/env bash
# Installs libsietch-io for C programs: install.sh PREFIX [FOLDER]
# FOLDER has the libraries as cargo built them; without it they are built.
set -euo pipefail
prefix=$(realpath -m "${1:?a prefix}")
built=${2:+$(realpath "$2")}
cd "$(dirname "$0")"
if [ -z "$built" ]; then
    cargo build -q --release -p sietch-io-c
    built=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release
fi
version=$(cargo pkgid | sed 's/.*[#@]//')

install -d "$prefix"/lib/pkgconfig "$prefix"/include "$prefix"/share/doc/sietch-io
install -m 755 "$built"/libsietch_io_c.so "$prefix"/lib/libsietch-io.so.0
ln -sf libsietch-io.so.0 "$prefix"/lib/libsietch-io.so
install -m 644 "$built"/libsietch_io_c.a "$prefix"/lib/libsietch-io.a
install -m 644 include/sietch-io.h "$prefix"/include/
install -m 644 examples/* "$prefix"/share/doc/sietch-io/
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" sietch-io.pc.in >"$prefix"/lib/pkgconfig/sietch-io.pc
