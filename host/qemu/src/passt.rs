//! passt, which leads ports of the host into a machine where it is installed.
//!
//! QEMU's own user network loses connections when more than a few are made at a time. passt
//! (passt(1)) serves thousands, needs no rights either, and has QEMU's frames by a socket.
//! The addresses in the machine are those of QEMU's network. It ends with the connection to
//! QEMU, so with the machine, however that ends, and with us if QEMU never calls. On a network of machines its switch
//! calls, and calls again if it was started anew: passt ends with us only.
//!
//! Debian 12's looks without a pause at each client that gave up before the machine answered it, until it forgets that one
//! after ten seconds (an event of epoll(7) that is level-triggered and not taken; mended upstream in 2024). A machine
//! that is slow for want of CPU would have still less, and more clients would give up. So passt has less weight than QEMU
//! where both want a CPU, and all that it wants elsewhere.
//!
//! Where it does not start (on a host without a route, or where a user may not make
//! namespaces) QEMU's own network does its work, and we say why.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, getuid, setpriority_process};

use crate::machine::{Forward, Forwarder, Machine, Net, Protocol};
use crate::starter;

const PROGRAM: &str = "passt";
/// How long it may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);
/// A third of QEMU's weight (sched(7)).
const NICENESS: i32 = 5;
/// The flag of a listening socket in /proc/net/unix (`__SO_ACCEPTCON`).
const LISTENING: &str = "00010000";
/// The network in the machine.
const ADDRESSES: [&str; 9] = [
    "--one-off",
    "--address",
    "10.0.2.15",
    "--netmask",
    "24",
    "--gateway",
    "10.0.2.2",
    "--dns-forward",
    "10.0.2.3",
];

/// A passt that waits for QEMU, or serves it. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Passt(Child);

/// Whether this host has passt.
pub fn is_installed() -> bool {
    let tried = Command::new(PROGRAM).arg("--version").output();
    tried.is_ok_and(|output| output.status.success())
}

/// Who leads ports into a machine with these ports on this host.
pub fn forwarder(net: &Net, forwards: &[Forward]) -> Forwarder {
    let may_serve = matches!(net, Net::User | Net::Switched(_));
    match may_serve && !forwards.is_empty() && is_installed() {
        true => Forwarder::Passt,
        false => Forwarder::Qemu,
    }
}

impl Passt {
    /// Starts it for `machine`, and waits until QEMU can call; its last words if it fails.
    pub(crate) fn start(machine: &Machine) -> Result<Self, String> {
        let (socket, log) = (machine.way_out_socket(), machine.state.join("passt.log"));
        for old in [&socket, &log] {
            // What a machine of the same name left behind.
            let _ = fs::remove_file(old);
        }
        let mut command = starter::bound_to_us(Path::new(PROGRAM));
        command.args(["--foreground", "--socket"]);
        command.arg(&socket).arg("--log-file").arg(&log);
        command.args(addresses(&machine.net));
        command.args(port_arguments(&machine.forwards));
        if getuid().is_root() {
            // It gives up all capabilities; as `nobody` it could not reach our folder.
            command.args(["--runas", "0"]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null());
        // A Ctrl-C at the terminal is not for it: the program may have answers to send before it ends.
        command.process_group(0);
        let child = starter::start(command).map_err(|error| error.to_string())?;
        // Where it may not be, it works all the same.
        let _ = setpriority_process(Pid::from_raw(child.id() as i32), NICENESS);
        let mut passt = Self(child);
        let outcome = passt.wait_until_listening(&socket);
        outcome.map_err(|error| last_words(&log).unwrap_or_else(|| error.to_string()))?;
        Ok(passt)
    }

    fn wait_until_listening(&mut self, socket: &Path) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !is_listening(&fs::read_to_string("/proc/net/unix")?, socket) {
            if let Some(status) = self.0.try_wait()? {
                return Err(io::Error::other(format!("it ended with {status}")));
            }
            if Instant::now() > deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Passt {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The addresses in the machine, and how long it serves.
fn addresses(net: &Net) -> Vec<String> {
    let Net::Switched(place) = net else {
        return ADDRESSES.iter().map(ToString::to_string).collect();
    };
    let pairs = [
        ("--address", place.address.to_string()),
        ("--netmask", place.prefix_len.to_string()),
        ("--gateway", place.gateway.to_string()),
        ("--dns", place.name_server.to_string()),
    ];
    let flags = pairs
        .into_iter()
        .flat_map(|(flag, value)| [flag.into(), value]);
    flags.chain(["--ipv4-only".into()]).collect()
}

/// `--tcp-ports` and `--udp-ports`. What is not said of UDP would follow TCP.
fn port_arguments(forwards: &[Forward]) -> Vec<String> {
    let of = |protocol: Protocol| {
        let own = forwards
            .iter()
            .filter(|forward| forward.protocol == protocol);
        let specs: Vec<String> = own
            .map(|forward| {
                let Forward {
                    host_ip,
                    host_port,
                    guest_port,
                    ..
                } = forward;
                format!("{host_ip}/{host_port}:{guest_port}")
            })
            .collect();
        match specs.is_empty() {
            true => vec!["none".to_string()],
            false => specs,
        }
    };
    let flags = [
        ("--tcp-ports", Protocol::Tcp),
        ("--udp-ports", Protocol::Udp),
    ];
    flags
        .into_iter()
        .flat_map(|(flag, protocol)| {
            let specs = of(protocol).into_iter();
            specs.flat_map(move |spec| [flag.to_string(), spec])
        })
        .collect()
}

/// Whether the table /proc/net/unix (unix(7)) has a listening socket at `path`. Connecting
/// would tell as well, but be taken for QEMU.
fn is_listening(table: &str, path: &Path) -> bool {
    let path = path.to_string_lossy();
    table.lines().any(|line| {
        let mut fields = line.split_whitespace();
        fields.nth(3) == Some(LISTENING) && fields.next_back() == Some(&path)
    })
}

/// The last line of its log.
fn last_words(log: &Path) -> Option<String> {
    let text = fs::read_to_string(log).ok()?;
    let line = text.lines().rfind(|line| !line.trim().is_empty())?;
    // A time and a level come first: `0.0123: ERROR: `.
    let words = line.rsplit_once(": ").map_or(line, |(_, words)| words);
    Some(words.trim().trim_end_matches('.').to_string())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn forward(host_port: u16, protocol: Protocol) -> Forward {
        Forward {
            host_ip: Ipv4Addr::LOCALHOST,
            host_port,
            guest_port: 53,
            protocol,
        }
    }

    #[test]
    fn ports_are_named_by_protocol_and_what_is_not_wanted_is_none() {
        let tcp = port_arguments(&[forward(5300, Protocol::Tcp), forward(5301, Protocol::Tcp)]);
        let specs = ["127.0.0.1/5300:53", "127.0.0.1/5301:53"];
        let wanted = ["--tcp-ports", specs[0], "--tcp-ports", specs[1]];
        assert_eq!(tcp[..4], wanted);
        assert_eq!(tcp[4..], ["--udp-ports", "none"]);
        let udp = port_arguments(&[forward(5300, Protocol::Udp)]);
        assert_eq!(udp, ["--tcp-ports", "none", "--udp-ports", specs[0]]);
    }

    #[test]
    fn a_socket_that_is_bound_but_does_not_listen_is_not_ready() {
        let table = "Num RefCount Protocol Flags Type St Inode Path\n\
            0: 00000002 00000000 00010000 0001 01 11 /a\n\
            0: 00000002 00000000 00000000 0001 01 12 /b\n";
        assert!(is_listening(table, Path::new("/a")));
        assert!(!is_listening(table, Path::new("/b")));
        assert!(!is_listening(table, Path::new("/c")));
    }
}
