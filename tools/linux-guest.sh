#!/usr/bin/env bash
# Prepares Debian's Linux as a guest, for comparison: vmlinuz, the modules of its network
# card in their order, and an init that behaves as Sietch's kernel does
# (tests/linux/init.c). The package comes through apt and is not installed.
#
#   tools/linux-guest.sh [cloud]     the kernel for clouds with virtio-net, in build/linux
#   tools/linux-guest.sh disk        the same with virtio-blk and CRC-32C by the processor, in build/linux-disk
#   tools/linux-guest.sh generic     the one for PCs with e1000 and igb, in build/linux-generic
#   tools/linux-guest.sh kvm         the one for clouds as a host with KVM, in build/linux-kvm
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-cloud} in
    cloud) out=build/linux suffix=cloud-amd64 modules=(net/core/failover drivers/net/net_failover drivers/net/virtio_net) ;;
    disk) out=build/linux-disk suffix=cloud-amd64 modules=(net/core/failover drivers/net/net_failover drivers/net/virtio_net drivers/block/virtio_blk arch/x86/crypto/crc32c-intel) ;;
    generic) out=build/linux-generic suffix=amd64 modules=(drivers/net/ethernet/intel/e1000/e1000 drivers/dca/dca drivers/i2c/algos/i2c-algo-bit drivers/net/ethernet/intel/igb/igb) ;;
    kvm) out=build/linux-kvm suffix=cloud-amd64 modules=(virt/lib/irqbypass arch/x86/kvm/kvm arch/x86/kvm/kvm-amd drivers/net/tun) ;;
    *) echo "usage: tools/linux-guest.sh [cloud|disk|generic|kvm]" >&2 && exit 2 ;;
esac
last=$out/modules/${#modules[@]}-$(basename "${modules[-1]}").ko
if [ -f "$last" ] && [ "$out/init" -nt tests/linux/init.c ]; then exit 0; fi

rm -rf "$out/package"
mkdir -p "$out/package" "$out/modules"
if ! [ -f "$last" ]; then
    package=$(apt-cache search --names-only "^linux-image-6[.]12[.][^-]*-$suffix\$" | cut -d' ' -f1 | sort -V | tail -1)
    if [ -z "$package" ]; then
        echo "apt knows no linux-image-6.12*-$suffix: add Debian's security or backports archive." >&2
        exit 1
    fi
    (cd "$out/package" && apt-get -qq -o APT::Sandbox::User=root -o Acquire::Retries=3 download "$package" && dpkg-deb -x ./*.deb .)
    number=1
    for module in "${modules[@]}"; do
        xz -dc "$out"/package/lib/modules/*/kernel/$module.ko.xz >"$out/modules/$number-$(basename $module).ko"
        number=$((number + 1))
    done
    cp "$out"/package/boot/vmlinuz-* "$out/vmlinuz"
    rm -r "$out/package"
fi
cc -static -O1 -Wall -D_GNU_SOURCE tests/linux/init.c -o "$out/init"
