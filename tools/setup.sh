#!/usr/bin/env bash
# Installs what a goal needs and is missing: tools/setup.sh run|test|bench|long|suites.
#
# As root on Debian this goes through apt, with QEMU from backports. Elsewhere it
# says in one sentence what to install. A stamp under build/ makes the second run
# free; it is bound to this file's text, so a new need is noticed.
set -euo pipefail
cd "$(dirname "$0")/.."

goal=${1:-run}
stamp=build/setup-$goal.stamp
if cmp -s "$0" "$stamp"; then exit 0; fi

# What each goal needs: a command or file, and the Debian package that has it.
needs_run() {
    cat <<-'NEEDS'
	cc gcc
	ld binutils
	redis-server redis-server
	redis-benchmark redis-tools
	passt passt
	NEEDS
}
needs_test() {
    needs_run
    cat <<-'NEEDS'
	musl-gcc musl-tools
	memcached memcached
	nginx nginx-light
	sqlite3 sqlite3
	busybox busybox-static
	/usr/bin/python3 python3
	node nodejs
	go golang-go
	wrk wrk
	ip iproute2
	numactl numactl
	unshare util-linux
	fincore util-linux-extra
	slabtop procps
	/usr/bin/netstat net-tools
	sar sysstat
	tcpdump tcpdump
	/usr/lib/postgresql postgresql
	mariadbd mariadb-server
	mariadb-slap mariadb-client
	haproxy haproxy
	iperf3 iperf3
	etcd etcd-server
	etcdctl etcd-client
	javac default-jdk-headless
	rabbitmqctl rabbitmq-server
	/usr/lib/python3/dist-packages/pika python3-pika
	strace strace
	gdb gdb
	perf linux-perf
	ping iputils-ping
	/usr/include/pcap.h libpcap-dev
	valgrind valgrind
	grub-mkrescue grub-common
	/usr/lib/grub/i386-pc/boot.img grub-pc-bin
	/usr/lib/grub/x86_64-efi/moddep.lst grub-efi-amd64-bin
	xorriso xorriso
	mformat mtools
	/usr/share/ovmf/OVMF.fd ovmf
	bochs bochs
	/usr/lib/x86_64-linux-gnu/bochs/plugins/libbx_term_gui.so bochs-term
	/usr/share/bochs/BIOS-bochs-latest bochsbios
	/usr/share/bochs/VGABIOS-lgpl-latest vgabios
	script bsdutils
	fio fio
	nvme nvme-cli
	sfdisk fdisk
	mkfs.ext4 e2fsprogs
	apache2ctl apache2
	umoci umoci
	skopeo skopeo
	docker-registry docker-registry
	mosquitto mosquitto
	mosquitto_pub mosquitto-clients
	unbound unbound
	named bind9
	sshd openssh-server
	ssh openssh-client
	vsftpd vsftpd
	curl curl
	puma puma
	/usr/lib/apache2/modules/libphp8.2.so libapache2-mod-php8.2
	NEEDS
}
needs_long() {
    needs_suites
    cat <<-'NEEDS'
	squid squid
	prometheus prometheus
	gunicorn gunicorn
	uvicorn uvicorn
	starman starman
	git git
	xargs findutils
	erl erlang-base
	/usr/include/stdio.h libc6-dev
	/usr/share/wordpress/wp-login.php wordpress
	/usr/share/wordpress/wp-content/themes/twentytwentythree wordpress-theme-twentytwentythree
	NEEDS
}
needs_suites() {
    needs_test
    cat <<-'NEEDS'
	make make
	tclsh tcl
	/usr/bin/prove perl
	/usr/include/tcl8.6/tcl.h tcl-dev
	/usr/include/zlib.h zlib1g-dev
	dpkg-source dpkg-dev
	xz xz-utils
	dpkg-deb dpkg
	curl curl
	/usr/share/nodejs/acorn node-acorn
	/usr/share/nodejs/cjs-module-lexer node-cjs-module-lexer
	/usr/share/nodejs/undici node-undici
	/usr/lib/x86_64-linux-gnu/libcares.so.2 libc-ares2
	/usr/lib/x86_64-linux-gnu/libuv.so.1 libuv1
	/usr/lib/x86_64-linux-gnu/libnghttp2.so.14 libnghttp2-14
	/usr/lib/x86_64-linux-gnu/libicui18n.so.72 libicu72
	NEEDS
}
needs_bench() {
    needs_run
    cat <<-'NEEDS'
	ab apache2-utils
	memcached memcached
	memcaslap libmemcached-tools
	nginx nginx-light
	wrk wrk
	iperf3 iperf3
	busybox busybox-static
	ip iproute2
	unshare util-linux
	ping iputils-ping
	xz xz-utils
	dpkg-deb dpkg
	valgrind valgrind
	/usr/lib/x86_64-linux-gnu/libjemalloc.so.2 libjemalloc2
	/usr/lib/x86_64-linux-gnu/libmimalloc.so.2 libmimalloc2.0
	/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4 libtcmalloc-minimal4
	NEEDS
}

PATH=$PATH:/usr/sbin:/sbin:/usr/local/go/bin:$HOME/.cargo/bin
qemu_major() { qemu-system-x86_64 --version 2>/dev/null | sed -n 's/^QEMU emulator version \([0-9]*\).*/\1/p'; }

packages=()
while read -r need package; do
    [ -e "$need" ] || command -v "$need" >/dev/null || packages+=("$package")
done < <("needs_$goal")
if ! command -v rustup >/dev/null; then
    command -v cargo >/dev/null || packages+=(rustc-web cargo-web rust-web-src rustfmt-web rust-web-clippy)
    command -v lld >/dev/null || packages+=(lld)
fi
major=$(qemu_major || true)
is_qemu_old=
if [ "${major:-0}" -lt 10 ]; then is_qemu_old=1 && packages+=(qemu-system-x86); fi

if [ ${#packages[@]} -gt 0 ]; then
    if [ "$(id -u)" != 0 ] || ! [ -f /etc/debian_version ]; then
        echo "sietch set-up: install ${packages[*]} (QEMU 10 or newer), or run this as root on Debian." >&2
        exit 1
    fi
    # Services stay off while their packages are installed: we want the programs only.
    policy=/usr/sbin/policy-rc.d
    saved=
    if [ -e "$policy" ]; then saved=$(mktemp) && cp -p "$policy" "$saved"; fi
    restore_policy() { if [ -n "$saved" ]; then mv "$saved" "$policy"; else rm -f "$policy"; fi; }
    trap restore_policy EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"

    # Backports come from where Debian's own packages come from.
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    if [ "$release" = bookworm ] && ! grep -rqs "$release-backports" /etc/apt/sources.list /etc/apt/sources.list.d; then
        shopt -s nullglob
        sources=(/etc/apt/sources.list.d/*.sources)
        lists=(/etc/apt/sources.list.d/*.list)
        if [ -f /etc/apt/sources.list ]; then lists+=(/etc/apt/sources.list); fi
        uri=$(cat /dev/null "${sources[@]}" "${lists[@]}" |
            sed -nE -e 's/^URIs: *([^ ]*).*/\1/p' -e 's/^deb (\[[^]]*\] )?([^ ]*) .*/\2/p' |
            { grep '/debian/*$' || true; } | head -1)
        if [ -z "$uri" ]; then
            echo "sietch set-up: apt has no Debian archive: add one with $release-backports." >&2
            exit 1
        fi
        printf 'Types: deb\nURIs: %s\nSuites: %s-backports\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' \
            "$uri" "$release" >/etc/apt/sources.list.d/sietch-backports.sources
    fi
    echo "sietch set-up: installing ${packages[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update
    install=(apt-get -qq install -y --no-install-recommends)
    if [ -n "$is_qemu_old" ] && [ "$release" = bookworm ]; then
        "${install[@]}" -t bookworm-backports qemu-system-x86 >/dev/null
    fi
    "${install[@]}" "${packages[@]}" >/dev/null
fi

# The kernel's target (rust-toolchain.toml names it too, for those who start with cargo).
if command -v rustup >/dev/null; then
    rustup target list --installed | grep -qx x86_64-unknown-none || rustup target add x86_64-unknown-none
elif [ "$(id -u)" = 0 ]; then
    tools/debian-rust.sh
fi

# The fuzzers need a nightly compiler.
if [ "$goal" = long ]; then
    rustup toolchain list | grep -q ^nightly || rustup toolchain install nightly --profile minimal
    command -v cargo-fuzz >/dev/null || cargo install -q cargo-fuzz --locked
fi

mkdir -p build
cp "$0" "$stamp"
