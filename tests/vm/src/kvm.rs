//! Sietch under KVM, in an emulated machine that virtualises (`nested`).
//!
//! Emulation keeps what KVM may lose: an interrupt, a doorbell or a wake-up between two CPUs that
//! are real to each other. All tests share one host, for its start takes longer than most of
//! them. Each guest differs from the plain one by what its name says.

use std::path::Path;
use std::time::Duration;

use nested::{Guest, Host, System};

use crate::guest::Setup;
use crate::tally::Tally;

/// What the sentences of all tests begin with.
pub const SENTENCE: &str = "under KVM";

const FOLDER: &str = "build/kvm-tests";
/// A script on a busy host ends by then.
const PATIENCE: Duration = Duration::from_secs(600);
/// One after the other, without one that stands still.
const LOADS: u32 = 50;
const REQUESTS: u32 = 4000;

/// A guest with Redis, and why it is another one: flags of `sietch run`, words for QEMU.
const SERVERS: [(&str, &[&str], &[&str]); 6] = [
    ("as it comes", &[], &[]),
    (
        "with the timer's counter",
        &[],
        &["-cpu", "max,-tsc-deadline"],
    ),
    ("with xAPIC", &[], &["-cpu", "max,-x2apic"]),
    ("without a PMU", &[], &["-cpu", "max,pmu=off"]),
    ("without KVM's help", &[], &["-cpu", "max,kvm=off"]),
    ("profiled by NMIs", &["--profile", "unread.folded"], &[]),
];

/// How a machine ends, what it runs, and what its kernel says at the end.
const ENDS: [(&str, &str, &str); 3] = [
    ("an exit", "exit 3", "exit status=3"),
    ("power-off", "poweroff -f", ""),
    ("reboot", "reboot -f", ""),
];

/// Runs all tests; each is counted.
pub fn run(setup: &Setup, tally: &mut Tally) {
    let mut world = match World::boot(setup) {
        Ok(world) => world,
        Err(why) => return tally.fail(&format!("{SENTENCE} a host boots: {why}")),
    };
    for (number, (what, ..)) in SERVERS.iter().enumerate() {
        let sentence = format!("{SENTENCE} Redis serves 50 clients, {what}");
        tally.run(&sentence, || world.serves(number, 1));
    }
    let sentence = format!("{SENTENCE} the clock runs as the host's does");
    tally.run(&sentence, || world.keeps_time());
    for (number, (how, ..)) in ENDS.iter().enumerate() {
        let sentence = format!("{SENTENCE} a machine ends by {how}");
        tally.run(&sentence, || world.ends(number));
    }
    let sentence = format!("{SENTENCE} Redis does not stand still in {LOADS} loads on end");
    tally.run(&sentence, || world.serves(0, LOADS));
}

/// The host and its guests.
struct World {
    host: Host,
    servers: Vec<Guest>,
    ends: Vec<Guest>,
    clock: Guest,
}

impl World {
    fn boot(setup: &Setup) -> Result<Self, String> {
        let output = Path::new(FOLDER);
        let cpus = if setup.is_single() { "1" } else { "2" };
        let guest = |name: &str, args: &[&str], options: &[&str]| {
            let args = [&["-m", "256M", "--cpus", cpus], args].concat();
            Guest::new(output, name, System::Sietch, &args, options)
        };
        let redis = ["redis-server", "--protected-mode", "no", "--save", ""];
        let servers = SERVERS
            .iter()
            .enumerate()
            .map(|(number, (_, flags, words))| {
                guest(&format!("redis{number}"), &[*flags, &redis].concat(), words)
            });
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        let ends = ENDS.iter().enumerate().map(|(number, (_, script, _))| {
            guest(
                &format!("end{number}"),
                &["busybox", "sh", "-c", script],
                &[],
            )
        });
        let ends = ends.collect::<Result<Vec<_>, _>>()?;
        let script = "while cut -d' ' -f1 /proc/uptime; do sleep 1; done";
        let clock = guest("clock", &["busybox", "sh", "-c", script], &[])?;
        let all = servers.iter().chain(&ends).chain([&clock]);
        let programs = ["redis-benchmark", "redis-cli"];
        let mut host = Host::boot(output, &programs, all)?;
        host.run(FUNCTIONS, PATIENCE)?;
        Ok(Self {
            host,
            servers,
            ends,
            clock,
        })
    }

    /// Starts a guest, puts so many loads on it, and ends it.
    fn serves(&mut self, number: usize, loads: u32) -> Result<(), String> {
        let guest = &self.servers[number];
        self.host.start(guest)?;
        let all = ["wait_for_redis".into()]
            .into_iter()
            .chain((0..loads).map(|_| format!("load {REQUESTS}")));
        let mut all = all.map(|script| self.host.run(&script, PATIENCE).map(drop));
        let served = all.try_for_each(|result| result);
        drop(all);
        served.and(self.host.stop(guest))
    }

    /// Lets a guest and its host count twenty seconds: they are apart by what a line of the
    /// guest's, one each second, may be late at both ends.
    fn keeps_time(&mut self) -> Result<(), String> {
        self.host.start(&self.clock)?;
        let script = "last() { tail -n 1 /tmp/clock/output; }\n\
            until [ -s /tmp/clock/output ]; do usleep 100000; done\n\
            a=$(last); b=$(cut -d' ' -f1 /proc/uptime); sleep 20\n\
            c=$(last); d=$(cut -d' ' -f1 /proc/uptime)\n\
            echo $a $b $c $d | awk '{ g = $3 - $1; h = $4 - $2; print \"guest\", g, \"host\", h; \
            exit !(g > h - 3 && g < h + 3) }'";
        let kept = self.host.run(script, PATIENCE).map(drop);
        kept.and(self.host.stop(&self.clock))
    }

    /// Starts a guest whose program ends the machine.
    fn ends(&mut self, number: usize) -> Result<(), String> {
        let guest = &self.ends[number];
        let name = guest.name();
        self.host.start(guest)?;
        let script = format!(
            "for i in $(seq 600); do kill -0 $(cat /tmp/{name}/pid) 2>/dev/null || break; usleep 100000; done\n\
             cat /tmp/{name}/kernel.log; [ $i -lt 600 ] && grep -q '{}' /tmp/{name}/kernel.log",
            ENDS[number].2
        );
        let ended = self.host.run(&script, PATIENCE).map(drop);
        ended.and(self.host.stop(guest))
    }
}

/// A load stands still when eight seconds pass with hardly a packet from the guest, and another
/// eight after each of the host's CPUs was interrupted.
///
/// The latter because QEMU's translator (10.0.2 at least) may lose an interrupt of the host itself:
/// where a virtual CPU leaves its guest, `do_vmexit` clears a bit of `interrupt_request` in several
/// steps while another thread may set one. The next interrupt of that CPU delivers both.
const FUNCTIONS: &str = r#"
wait_for_redis() {
    for i in $(seq 1200); do timeout 5 redis-cli -h 10.0.2.15 ping 2>/dev/null | grep -q PONG && return; usleep 100000; done
    false
}
load() {
    redis-benchmark -h 10.0.2.15 -t set,get -c 50 -n $1 --csv >/tmp/said 2>&1 &
    last=0; quiet=0
    while kill -0 $! 2>/dev/null; do
        usleep 200000
        now=$(cat /sys/class/net/nested0/statistics/rx_packets)
        if [ $((now - last)) -lt 4 ]; then quiet=$((quiet + 1)); else quiet=0; fi
        last=$now
        if [ $quiet = 40 ]; then for cpu in 1 2; do taskset $cpu true; done; fi
        if [ $quiet = 80 ]; then echo "it stands still after $now packets"; kill $!; return 1; fi
    done
    grep -q '^"GET"' /tmp/said || { cat /tmp/said; return 1; }
}
"#;
