#!/usr/bin/env bash
# The test suites of Redis, Python, SQLite and Node, and a load on nginx, each with
# libumem.so preloaded, on this Linux: tools/umem-suites.sh [redis|python|sqlite|node|nginx ...].
#
# Debian's sources and packages are fetched once into build/suites; the programs under test are
# Debian's own. What fails runs again without the library: only what fails with it alone counts.
# Ends with one line for each suite, and fails if a test failed with the library alone.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin:/usr/local/go/bin:$HOME/.cargo/bin

. tools/suites.sh
umem=$home/target/release/libumem.so

# ---- the suites: NAME_fetch; NAME_run LIBRARY TEST... writes a log; NAME_passed and
# NAME_failed read it. Without a TEST, all that the suite's choice has.

redis_units=(type/string type/incr type/list type/list-2 type/list-3 type/set type/zset type/hash
    type/stream type/stream-cgroups expire scripting functions aofrw keyspace scan dump sort other
    multi bitops bitfield hyperloglog geo lazyfree maxmemory memefficiency querybuf pubsub
    introspection acl tracking client-eviction)
redis_fetch() {
    source_of redis || return 1
    local program
    for program in server cli benchmark check-aof check-rdb; do
        printf '#!/bin/sh\nLD_PRELOAD=$SUITE_LIBRARY exec %s "$@"\n' "$(command -v "redis-$program")" \
            >"$work/src/redis/src/redis-$program"
        chmod 755 "$work/src/redis/src/redis-$program"
    done
}
# Left out because they ask for jemalloc by name: the defragmentation of memefficiency reads
# jemalloc's statistics, and one test of strings compares sizes with jemalloc's classes (Debian's
# server is linked with it and says so, also where another library takes its calls).
redis_run() {
    local library=$1 unit units=()
    shift
    [ $# -gt 0 ] || set -- "${redis_units[@]/#/unit/}"
    for unit in "$@"; do units+=(--single "$unit"); done
    (cd "$work/src/redis" && SUITE_LIBRARY=$library tclsh tests/test_helper.tcl --clients 2 --timeout 120 \
        --tags -defrag --skiptest "trim on SET with big value" "${units[@]}")
}
redis_passed() { grep -acE '^\[[^]]*ok[^]]*\]: '; }
redis_failed() { sed -nE 's/^\*\*\* .*\[(.*err.*|.*exception.*)\].* in tests\/(.*)\.tcl.*/\2/p'; }

# Not in the list: what needs a display, a network or a compiler, what takes minutes and hardly
# allocates, and what tests the interpreter's own allocator.
python_without=(test_gdb test_distutils test_venv test_ensurepip test_cppext test_peg_generator test_tools
    test_idle test_tk test_ttk_guionly test_ttk_textonly test_embed test_faulthandler test_regrtest
    test_multiprocessing_spawn test_multiprocessing_forkserver test_multiprocessing_main_handling
    test_concurrent_futures test_multiprocessing_fork test_signal test_ssl test_imaplib test_xmlrpc test_largefile test_zipfile test_socket test_asyncio
    test_subprocess test_logging test_lib2to3)
python_fetch() {
    unpack python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libpython3.11-testsuite
}
# With PYTHONMALLOC=malloc every object is an allocation; usually Python has its own heap.
python_run() {
    local library=$1
    shift
    [ $# -gt 0 ] || set -- -x "${python_without[@]}"
    mkdir -p "$work/python"
    (cd "$work/python" && PYTHONHOME=$work/root/usr PYTHONMALLOC=malloc LD_PRELOAD=$library \
        "$work/root/usr/bin/python3.11" -m test -j2 --timeout 120 "$@")
}
python_passed() { sed -nE 's/^([0-9]+) tests? OK\.$/\1/p' | tail -1; }
python_failed() {
    awk '/^[0-9]+ tests? failed:$/ { on = 1; next } !/^    / { on = 0 } on' | tr -s ' ' '\n' | grep .
}

sqlite_fetch() { sqlite_testfixture; }
sqlite_run() {
    local library=$1
    shift
    (cd "$work/sqlite" && LD_PRELOAD=$library ./testfixture "$work/src/sqlite3/test/testrunner.tcl" \
        --jobs 2 veryquick "$@")
}
sqlite_passed() { awk '/ errors from [0-9]+ tests/ { passed = $4 - $1 } END { print passed + 0 }'; }
sqlite_failed() { sed -nE 's/^([^ ]*\.test)\.\.\. FAILED.*/\1/p'; }

node_tests=('parallel/test-zlib*' 'parallel/test-buffer*' 'parallel/test-worker*')
node_fetch() {
    source_of nodejs && unpack nodejs libnode108 || return 1
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s LD_PRELOAD=$SUITE_LIBRARY exec %s "$@"\n' \
        "$work/root/usr/lib/x86_64-linux-gnu" "$work/root/usr/bin/node" >"$work/node"
    chmod 755 "$work/node"
}
node_run() {
    local library=$1
    shift
    [ $# -gt 0 ] || set -- "${node_tests[@]}"
    (cd "$work/src/nodejs" && SUITE_LIBRARY=$library python3 tools/test.py --shell="$work/node" \
        -p tap -j 2 -t 120 "$@")
}
node_passed() { grep -c '^ok '; }
node_failed() { sed -nE 's/^not ok [0-9]+ (.*)/\1/p'; }

# Debian has no package of nginx's tests. Instead: two workers serve a page as it is, compressed
# and through a proxy to themselves, under wrk, with five reloads meanwhile.
nginx_fetch() { :; }
nginx_port=18473
nginx_check() {
    if [ "$2" = "$3" ]; then echo "ok $1"; else echo "failed $1: $2, not $3"; fi
}
nginx_run() {
    local library=$1 root=$work/nginx address=http://127.0.0.1:$nginx_port place sum said
    rm -rf "$root" && mkdir -p "$root/logs"
    seq 1 20000 >"$root/page.html"
    cat >"$root/nginx.conf" <<-END
	daemon on; user root; worker_processes 2; pid $root/pid; error_log $root/errors warn;
	events { worker_connections 512; }
	http { access_log off; client_body_temp_path $root/body; proxy_temp_path $root/proxied; default_type text/html;
	  gzip_types *; upstream self { server 127.0.0.1:$nginx_port; keepalive 8; }
	  server { listen 127.0.0.1:$nginx_port; root $root;
	    location /plain/ { alias $root/; }
	    location /gzip/ { alias $root/; gzip on; }
	    location /proxy/ { proxy_pass http://self/gzip/; proxy_http_version 1.1; proxy_set_header Connection ""; } } }
	END
    LD_PRELOAD=$library nginx -p "$root" -c "$root/nginx.conf" || { echo "failed start"; return; }
    for _ in $(seq 100); do [ -s "$root/pid" ] && break || sleep 0.1; done
    nginx_check preloaded "$(grep -c -m1 "/libumem.so" "/proc/$(cat "$root/pid")/maps")" "$([ -n "$library" ] && echo 1 || echo 0)"
    sum=$(sha256sum <"$root/page.html")
    for place in plain gzip proxy; do
        (for _ in 1 2 3 4 5; do sleep 1 && kill -HUP "$(cat "$root/pid")"; done) &
        said=$(wrk -t2 -c40 -d7s -H "Accept-Encoding: gzip" "$address/$place/page.html")
        wait $!
        echo "$said" | sed -n 's/^ *\([0-9]* requests\) in.*/# \1/p'
        nginx_check "$place answers" "$(echo "$said" | grep -c 'Non-2xx')" 0
        nginx_check "$place content" "$(curl -s --compressed "$address/$place/page.html" | sha256sum)" "$sum"
    done
    kill -QUIT "$(cat "$root/pid")"
    for _ in $(seq 200); do [ -e "$root/pid" ] && sleep 0.1 || break; done
    nginx_check "it ends" "$([ -e "$root/pid" ] && echo running || echo ended)" ended
    nginx_check "no process died" "$(grep -cE 'exited on signal|\[(alert|emerg)\]' "$root/errors")" 0
}
nginx_passed() { grep -c '^ok '; }
nginx_failed() { sed -nE 's/^failed ([^:]*).*/\1/p'; }

# ---- one suite after the other

# Who runs in the background has SIGINT ignored, which some tests notice.
suite() {
    local name=$1 log=$work/logs/$1 start=$SECONDS failed=() both=() alone=() test
    "${name}_fetch" || { echo "$name: cannot be fetched or built" && return 1; }
    nice -n 10 env --default-signal=INT "$BASH" "$0" --run "$name" "$umem" >"$log" 2>&1
    mapfile -t failed < <("${name}_failed" <"$log" | sort -u)
    if [ ${#failed[@]} -gt 0 ]; then
        nice -n 10 env --default-signal=INT "$BASH" "$0" --run "$name" "" "${failed[@]}" >"$log-without" 2>&1
        mapfile -t both < <("${name}_failed" <"$log-without" | sort -u)
    fi
    for test in "${failed[@]}"; do
        printf '%s\n' "${both[@]}" | grep -qxF -- "$test" || alone+=("$test")
    done
    local passed
    passed=$("${name}_passed" <"$log")
    echo "$name: ${passed:-0} passed, ${#alone[@]} failed: ${alone[*]:-none};" \
        "without libumem.so too: ${both[*]:-none}; $((SECONDS - start)) s (log: ${log#"$home/"})"
    [ "${passed:-0}" -gt 0 ] && [ ${#alone[@]} = 0 ]
}

if [ "${1:-}" = --run ]; then
    shift
    "$1_run" "${@:2}"
    exit
fi
tools/setup.sh suites && cargo build -q --release -p umem && prepare_apt || exit 1
[ $# -gt 0 ] || set -- redis python sqlite node nginx
status=0
for name in "$@"; do suite "$name" || status=1; done
exit $status
