#!/usr/bin/env bash
# Prepares Debian's Linux as a guest, for comparison, in build/linux: vmlinuz, the
# modules of its network card in their order, and an init that behaves as Sietch's
# kernel does (tests/linux/init.c). The package comes through apt and is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/linux
if [ -f "$out/vmlinuz" ] && [ "$out/init" -nt tests/linux/init.c ]; then exit 0; fi

rm -rf "$out/package"
mkdir -p "$out/package" "$out/modules"
if ! [ -f "$out/vmlinuz" ]; then
    package=$(apt-cache search --names-only '^linux-image-6[.]12[.].*-cloud-amd64$' | cut -d' ' -f1 | sort -V | tail -1)
    if [ -z "$package" ]; then
        echo "apt knows no linux-image-6.12*-cloud-amd64: add Debian's security or backports archive." >&2
        exit 1
    fi
    (cd "$out/package" && apt-get -qq -o APT::Sandbox::User=root download "$package" && dpkg-deb -x ./*.deb .)
    number=1
    for module in net/core/failover drivers/net/net_failover drivers/net/virtio_net; do
        xz -dc "$out"/package/lib/modules/*/kernel/$module.ko.xz >"$out/modules/$number-$(basename $module).ko"
        number=$((number + 1))
    done
    cp "$out"/package/boot/vmlinuz-* "$out/vmlinuz"
    rm -r "$out/package"
fi
cc -static -O1 -Wall -D_GNU_SOURCE tests/linux/init.c -o "$out/init"
