#!/usr/bin/env bash
# Packs what is built in target/ as a Debian package: tools/deb.sh [FOLDER]. `make deb` builds it before.
# Manual pages and completions are made by the command itself, from its flags.
set -euo pipefail
cd "$(dirname "$0")/.."

to=${1:-build}
target=target/release
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

install -D -m 755 -s "$target/sietch" "$root/usr/bin/sietch"
install -D -m 644 target/x86_64-unknown-none/release/sietch-kernel "$root/usr/lib/sietch/sietch-kernel"
install -D -m 644 "$target/libsietch.so" "$root/usr/lib/sietch/libsietch.so"
install -D -m 755 -s target/x86_64-unknown-linux-gnu/release/sietch-cloud-init "$root/usr/lib/sietch/sietch-cloud-init"
install -D -m 644 LICENSE-APACHE "$root/usr/share/doc/sietch/LICENSE-APACHE"
install -D -m 644 LICENSE-MIT "$root/usr/share/doc/sietch/copyright"

"$target/sietch" man --output "$root/usr/share/man/man1"
gzip -9n "$root"/usr/share/man/man1/*
completions=$root/usr/share
mkdir -p "$completions"/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
"$target/sietch" completions bash >"$completions/bash-completion/completions/sietch"
"$target/sietch" completions zsh >"$completions/zsh/vendor-completions/_sietch"
"$target/sietch" completions fish >"$completions/fish/vendor_completions.d/sietch.fish"

mkdir "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<END
Package: sietch
Version: $version
Architecture: amd64
Maintainer: The Sietch authors <sietch@localhost>
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Depends: libc6, qemu-system-x86, util-linux
Recommends: e2fsprogs, passt
Section: admin
Priority: optional
Description: runs unmodified Linux programs, each in a virtual machine of its own
 The command sietch packs a program of the host, or takes a container image, and runs it on
 the Sietch kernel in QEMU, with docker's words.
END
mkdir -p "$to"
dpkg-deb --root-owner-group --build "$root" "$to/sietch_${version}_amd64.deb"
