#!/usr/bin/env bash
# `make run`: serves Redis on Sietch, runs redis-benchmark once from here, and stays
# up until Ctrl-C. Without a terminal it ends after the benchmark with its status.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build -q --release -p cli
port=6379
taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
while taken "$port"; do port=$((port + 1)); done
[ "$port" = 6379 ] || echo "Port 6379 is taken here, so Redis is at port $port."

./sietch run --name "redis-$port" -p "127.0.0.1:$port:6379" \
    "$(command -v redis-server)" --save "" --protected-mode no </dev/null &
machine=$!
stop() { ./sietch stop "redis-$port" >/dev/null 2>&1 || true; wait "$machine" || true; }
trap stop EXIT
trap 'exit 130' INT TERM

for _ in $(seq 600); do
    kill -0 "$machine" 2>/dev/null || { wait "$machine"; exit $?; }
    [ "$(redis-cli -p "$port" ping 2>/dev/null)" != PONG ] || break
    sleep 0.1
done
# QEMU's own network takes few connections at a time and forgets more, passt does not.
clients=50
command -v passt >/dev/null || clients=10
benchmark=(redis-benchmark -p "$port" -c "$clients" -t ping,set,get -n 20000 -q)
if ! [ -t 1 ]; then
    # Its progress overwrites itself, which only a terminal shows well.
    "${benchmark[@]}" | tr '\r' '\n' | grep 'requests per second'
    exit
fi
"${benchmark[@]}" || echo "redis-benchmark ended with $?." >&2
echo "Redis serves at 127.0.0.1:$port; Ctrl-C stops the machine."
wait "$machine"
