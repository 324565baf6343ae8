#!/usr/bin/env bash
# The suites of Redis and memcached against Debian's servers in a machine, by each network that a
# program can have there; the reference is the same server on this Linux.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin:/usr/local/go/bin:$HOME/.cargo/bin

usage() {
    cat <<-END
	Usage: tools/bypass-suites.sh [--cpus N] [--slow] [--net NETWORK]... [redis|memcached]... [-- TEST...]

	Runs other programs' own test suites against their servers in a machine (docs/bypass.md).

	  --net NETWORK  kernel (the kernel's sockets), vnic (libsietch.so on a VNIC) or card (libsietch.so with
	                 the machine's card for itself); all three unless told
	  --cpus N       CPUs of the machine [default: 1]
	  --slow         with the tests that Redis calls slow: long ones of its data structures, not of sockets
	  TEST           units of Redis (unit/pubsub) or files of memcached (t/cas.t); all unless told

	Ends with one line for each suite and network, and with 0 if no test failed there that passes on Linux, 1 if
	one did, 2 if something could not be fetched, built or started. Needs root, for a namespace with a tap
	interface. SIETCH names a command that is built already; then nothing is built.
	END
}

. tools/suites.sh
logs=$work/logs

# ---- the network, in a namespace of our own, and who serves there

# Servers have the sixteen addresses from this one on, and each a tap interface of its own: one with several machines would give
# a frame to any of them. They have the host's address, and lead to one server.
host=10.0.2.2
servers=10.0.2.16
export ADDRESS=${ADDRESS:-$servers}
make_network() {
    local -i last
    ip link set lo up || return
    for ((last = 16; last < 32; last++)); do
        ip tuntap add mode tap "tap$last" multi_queue && ip address add $host/32 dev "tap$last" &&
            ip link set "tap$last" up && ip route add "${servers%.*}.$last" dev "tap$last" || return
    done
}
# They are this Linux' own, or machines'.
move_addresses() {
    local -i last
    local change=delete
    [ "$NETWORK" = linux ] && change=add
    for ((last = 16; last < 32; last++)); do
        ip route $change local "${servers%.*}.$last" dev lo
    done
}

# Becomes the server at $ADDRESS by $NETWORK: `serve PROGRAM...`.
serve() {
    local name by=() tap=tap${ADDRESS##*.} beside=$work/src/memcached/t
    case $NETWORK in
        linux) exec "$@" ;;
        vnic) by=(--bypass=vnic) ;;
        card) by=(--bypass) ;;
    esac
    # Tests of memcached tell it by their environment and by files beside them.
    for name in "${!T_MEMD_@}"; do by+=(-e "$name"); done
    [[ $* != *"$beside"* ]] || by+=(--add "$beside:$beside")
    # The machine before may have had another card.
    ip neighbour flush dev "$tap"
    exec "$SIETCH" run --name "suite-$$" -m 2G --cpus "$CPUS" --net tap=$tap --ip "$ADDRESS/24,$host" \
        --mac-address "52:54:00:00:00:${ADDRESS##*.}" ${by[@]+"${by[@]}"} "$@" </dev/null
}
# A tap interface with a carrier is a machine's.
wait_until_gone() {
    local -i i
    for ((i = 0; i < 100; i++)); do
        [ "$NETWORK" = linux ] || ! ip link show | grep -q "tap.*LOWER_UP" && return
        sleep 0.1
    done
    echo "a machine did not end"
}

# ---- the suites: NAME_fetch, NAME_tests; NAME_test TEST runs one and writes a log, NAME_passed and
# NAME_failed read it.

redis_port=6379
# The server is on another host than the suite: its wall clock is as late as the machine's start took
# (docs/clock.md), and a port that is taken here is free there.
redis_without=(--skiptest "/EXAT option|PXAT option|EXPIREAT - Check|can set an absolute expire"
    --skiptest "CONFIG SET rollback on apply error")
# Redis leaves these out where it has not started the server. They only want one of their own, as each unit has here,
# and are about its clients. And what is slow in querybuf waits.
redis_units=(obuf-limits client-eviction limits auth pubsubshard acl info)
redis_fetch() {
    source_of redis || return
    (
        cd "$work/src/redis/tests/unit" || exit
        sed -i -e 's/ *"external:skip"//' -e 's/ *external:skip//' "${redis_units[@]/%/.tcl}"
        sed -i 's/querybuf slow/querybuf/' querybuf.tcl
    )
}
redis_tests() { (cd "$work/src/redis" && tclsh tests/test_helper.tcl --list-tests); }
redis_test() {
    serve redis-server --port $redis_port --protected-mode no --save "" --dir /tmp \
        --enable-protected-configs yes --enable-debug-command yes --enable-module-command yes >>"$console" 2>&1 &
    local server=$!
    if redis_waits $server; then
        (cd "$work/src/redis" && TERM=dumb tclsh tests/test_helper.tcl --host $ADDRESS --port $redis_port \
            --clients 1 --timeout 120 --durable "${tags[@]}" "${redis_without[@]}" --single "$1") || echo "left with $?"
        redis_answers || echo "[exception]: the server is gone"
    else
        echo "[exception]: the server did not start"
    fi
    kill $server && wait $server
}
redis_waits() {
    local -i i
    for ((i = 0; i < 100; i++)); do
        redis_answers && return
        kill -0 "$1" || return
        sleep 0.2
    done
    return 1
}
# One that asks for a password answers too.
redis_answers() { timeout 5 redis-cli -h $ADDRESS -p $redis_port ping 2>/dev/null | grep -qE '^(PONG|NOAUTH)'; }
redis_passed() { grep -ac '^\[ok\]: '; }
# What failed is told when it happens and again at the end, which a unit that hangs does not reach.
redis_failed() {
    sed -nE 's/^\[err\]: (.*) in tests\/.*\.tcl.*/\1/p; s/^\[exception\]: (the server .*)/\1/p
        s/^\[(exception|TIMEOUT)\]: .*/\1/p'
}

# The tests start servers with flags of their own, which are in machines here, and not on this host's loopback.
# None is at a Unix socket, which a help without it tells the tests. Debian's server is built without the privileges
# that one flag is about.
memcached_fetch() {
    source_of memcached || return
    (
        cd "$work/src/memcached" || exit
        sed -i -e "s/my \$host = '127.0.0.1';/my \$host = \$ENV{ADDRESS} = '10.0.2.' . (16 + \$ENV{SERVERS}++ % 16);/" \
            -e 's/"127.0.0.1:\$port"/"$host:$port"/' -e "s/PeerAddr => '127.0.0.1'/PeerAddr => \$self->{host}/" \
            -e 's/LocalAddr => .127.0.0.1.,$/LocalAddr => "0.0.0.0",/' \
            -e 's/ -o relaxed_privileges//' t/lib/MemcachedTest.pm
        sed -i 's/-l 127.0.0.1/-l 0.0.0.0/' t/*.t
        printf '#!/bin/sh\nif [ "$*" = -h ]; then memcached -h | grep -v unix-socket; exit; fi\n%s\n' \
            "exec '$home/tools/bypass-suites.sh' --serve memcached \"\$@\"" >memcached-debug
        printf '#!/bin/sh\nshift\nexec "$@"\n' >timedrun
        chmod 755 memcached-debug timedrun
    )
}
# Not those of the storage on disks, nor that of a daemon: it leaves its machine's first program, which is the machine's end,
# and tells the number of its process in a file there.
memcached_tests() { (cd "$work/src/memcached" && printf '%s\n' t/*.t | grep -vE 'extstore|daemonize'); }
memcached_test() { (cd "$work/src/memcached" && timeout 120 perl "$1") || echo "left with $?"; }
memcached_passed() { grep -ac '^ok '; }
memcached_failed() { sed -nE 's/^not ok [0-9]+( - )?(.*)/\2/p; s/^(left with .*)/\1/p'; }

# ---- one suite by one network after the other

# Runs SUITE by $NETWORK: `passed NUMBER` and `failed TEST: NAME` in a file, for each TEST of standard input.
run() {
    local suite=$1 test log verdicts=$logs/$1-$NETWORK.verdicts
    console=$logs/$suite-$NETWORK.console
    rm -f "$logs/$suite-$NETWORK"[-.]*
    move_addresses 2>/dev/null
    while read -r test; do
        log=$logs/$suite-$NETWORK-${test//\//-}.log
        "${suite}_test" "$test" >"$log" 2>&1 </dev/null
        wait_until_gone >>"$log"
        echo "passed $("${suite}_passed" <"$log")" >>"$verdicts"
        "${suite}_failed" <"$log" | sed "s|^|failed $test: |" >>"$verdicts"
    done
    # The library says so where it could not have its network.
    ! grep -ha libsietch: "$logs/$suite-$NETWORK"[-.]* >&2
}

failed() { sed -n 's/^failed //p' "$logs/$1-$2.verdicts" | sort -u; }
passed() { awk '$1 == "passed" { sum += $2 } END { print sum + 0 }' "$logs/$1-$2.verdicts"; }

# Those tests of SUITE in which something passes on Linux: others leave themselves out.
tests_that_run() {
    local test
    while read -r test; do
        [ "$("$1_passed" <"$logs/$1-linux-${test//\//-}.log")" = 0 ] || echo "$test"
    done
}
chosen() { if [ ${#tests[@]} -gt 0 ]; then printf '%s\n' "${tests[@]}"; else "$1_tests"; fi; }

suite() {
    local name=$1 elsewhere=(linux) alone line began=$SECONDS
    export NETWORK=linux
    run "$name" < <(chosen "$name") || return
    lines+=("$name, Linux: $(passed "$name" linux) passed, $(failed "$name" linux | wc -l) failed; $((SECONDS - began)) s")
    for NETWORK in "${networks[@]}"; do
        began=$SECONDS
        run "$name" < <(chosen "$name" | tests_that_run "$name") || return
        alone=$(comm -23 <(failed "$name" "$NETWORK") <(for by in "${elsewhere[@]}"; do failed "$name" "$by"; done | sort -u))
        line="$name, $NETWORK: $(passed "$name" "$NETWORK") passed, $(failed "$name" "$NETWORK" | wc -l) failed,"
        line+=" $(grep -c . <<<"$alone") of them not by ${elsewhere[*]}${alone:+: ${alone//$'\n'/; }}; $((SECONDS - began)) s"
        lines+=("$line")
        [ -z "$alone" ] || status=1
        [ "$NETWORK" = kernel ] && elsewhere+=(kernel)
    done
    return 0
}

# ---- the command

if [ "${1:-}" = --serve ]; then
    shift
    serve "$@"
fi
arguments=("$@") networks=() suites=() tests=() tags=(--tags -slow)
export CPUS=1
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage && exit ;;
        --cpus) CPUS=$2 && shift 2 ;;
        --slow) tags=() && shift ;;
        --net) networks+=("$2") && shift 2 ;;
        redis | memcached) suites+=("$1") && shift ;;
        --) shift && tests=("$@") && break ;;
        *) usage >&2 && exit 2 ;;
    esac
done
[ ${#networks[@]} -gt 0 ] || networks=(kernel vnic card)
[ ${#suites[@]} -gt 0 ] || suites=(redis memcached)

# In the namespace nothing leads to the archives.
if [ -z "${SUITES_INSIDE:-}" ]; then
    tools/setup.sh suites && prepare_apt || exit 2
    for name in "${suites[@]}"; do "${name}_fetch" || exit 2; done
    if [ -z "${SIETCH:-}" ]; then
        tools/kernel.sh build -q -p image --release && cargo build -q --release -p cli -p sietch || exit 2
    fi
    export SIETCH=${SIETCH:-$home/target/release/sietch}
    SUITES_INSIDE=1 exec unshare --net -- "$BASH" "$home/tools/bypass-suites.sh" "${arguments[@]}"
fi
make_network || exit 2
lines=() status=0
for name in "${suites[@]}"; do suite "$name" || status=2; done
printf '%s\n' "${lines[@]}"
exit $status
