#!/usr/bin/env bash
# SQLite's own tests of crashes (crash*.test, walcrash*.test of Debian's source), in a machine, on a volume with ext4, as
# a user who is not root.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin:$HOME/.cargo/bin

usage() {
    cat <<-END
	Usage: tools/sqlite-crash.sh [--cpus N] [TEST...]

	  --cpus N  CPUs of the machine [default: 2]
	  TEST      crash, walcrash2 and so on; all unless told

	Ends with a line for each test, and with 0 if none has an error, 1 if one has, 2 if something could not be
	fetched or built. SIETCH names a command that is built already; then nothing is built.
	END
}

. tools/suites.sh
cpus=2 tests=()
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage && exit ;;
        --cpus) cpus=$2 && shift 2 ;;
        -*) usage >&2 && exit 2 ;;
        *) tests+=("$1") && shift ;;
    esac
done

tools/setup.sh suites && prepare_apt && sqlite_testfixture || exit 2
if [ -z "${SIETCH:-}" ]; then
    tools/kernel.sh build -q -p image --release && cargo build -q --release -p cli || exit 2
    SIETCH=target/release/sietch
fi
if [ ${#tests[@]} = 0 ]; then
    mapfile -t tests < <(cd "$work/src/sqlite3/test" && ls crash*.test walcrash*.test writecrash.test | sed 's/\.test$//')
fi

volume=sqlite-crash-$$
trap '"$SIETCH" volume rm "$volume" >/dev/null 2>&1' EXIT
"$SIETCH" volume create --size 256M "$volume" >/dev/null || exit 2
# The tests' folder is the current one; each has one of its own.
script='cd /data && chown 65534:65534 . && for test in "$@"; do
    echo "begin $test"
    setpriv --reuid=65534 --regid=65534 --clear-groups sh -c "mkdir $test && cd $test &&
        exec /suites/sqlite/testfixture /suites/src/sqlite3/test/$test.test" | grep -E "errors out of|^! |Error"
    rm -rf "$test"
done'
folders=()
for folder in usr lib lib64 bin etc; do folders+=(-v "/$folder:/$folder:ro"); done
log=$work/logs/sqlite-crash
"$SIETCH" run --net none -m 1G --cpus "$cpus" -v "$volume:/data" -v "$work:/suites:ro" "${folders[@]}" \
    /bin/bash -c "$script" tests "${tests[@]}" </dev/null 2>&1 | tee "$log" | grep -v '^sietch:'

# Each test has begun and ended, without an error.
passed=$(tr -d '\r' <"$log" | grep -c '^0 errors out of')
echo "$passed of ${#tests[@]} tests without an error"
"$SIETCH" volume fsck --dry-run "$volume" || exit 1
[ "$passed" = ${#tests[@]} ]
