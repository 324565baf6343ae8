//! Debian's ping and busybox' arping, unmodified: programs that make packets themselves.

use std::time::Duration;

use crate::Test;
use crate::guest::Setup;

/// The tests.
pub const TESTS: &[Test] = &[
    ("ping is answered by loopback and by the next router", ping),
    ("arping finds the next router by frames of its own", arping),
];

const PATIENCE: Duration = Duration::from_secs(60);
/// The next router, with a tap interface and with QEMU's own network.
const ROUTER: &str = "10.0.2.2";

/// Runs a shell with a network; whether it writes each of `words`.
fn say(setup: &Setup, script: &str, words: &[&str]) -> Result<(), String> {
    // The port is not used; it is what a machine with a network is asked for.
    let args = ["--add", "/usr/bin/ping", "busybox", "sh", "-c", script];
    let (guest, _) = setup.serve(9, &args)?;
    words
        .iter()
        .try_for_each(|word| guest.expect(word, PATIENCE))
}

fn ping(setup: &Setup) -> Result<(), String> {
    let script = format!(
        "p=/usr/bin/ping; $p -4 -c 3 -i 0.2 127.0.0.1; $p -4 -c 1 -W 20 {ROUTER}; \
         $p -4 -c 1 -W 20 -s 1000 {ROUTER}; $p -4 -c 1 -s 40001 127.0.0.1; echo done"
    );
    let words = [
        "64 bytes from 127.0.0.1: icmp_seq=3 ttl=64",
        "3 packets transmitted, 3 received, 0% packet loss",
        "64 bytes from 10.0.2.2: icmp_seq=1",
        "1008 bytes from 10.0.2.2: icmp_seq=1",
        "40009 bytes from 127.0.0.1: icmp_seq=1",
        "done",
    ];
    say(setup, &script, &words)
}

fn arping(setup: &Setup) -> Result<(), String> {
    let script = format!("busybox arping -c 2 -I eth0 {ROUTER}; echo ended with $?");
    let words = ["Unicast reply from 10.0.2.2 [", "ended with 0"];
    say(setup, &script, &words)
}
