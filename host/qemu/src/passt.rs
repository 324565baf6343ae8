//! passt, which leads ports of the host into a machine where it is installed.
//!
//! QEMU's own user network loses connections when more than a few are made at a time. passt
//! (passt(1)) serves thousands, needs no rights either, and has QEMU's frames by a socket.
//! The addresses in the machine are those of QEMU's network.
//!
//! **No SYN is lost before QEMU has it.** Debian 12's passt sends a client's SYN once. It reaches nobody while QEMU has not called yet,
//! nor a machine whose station passt does not know, which it learns from the machine's first frame; and the client would wait
//! for ten seconds, and find a connection reset. So passt has its end of a [`Wire`] from the start. What it writes waits
//! there, and then in QEMU; and the first thing that it reads is which station is at the other end. Ports are open before the
//! machine runs, and one of a snapshot answers as soon as it does.
//!
//! QEMU 10 holds what it has read for a card without a driver, and drops it when the driver comes (`virtio_set_status` has the
//! card take its frames before the new status counts). It reads no further meanwhile. So what it reads first, of a machine that boots, are
//! frames that nobody misses; the SYNs wait behind them, and the kernel refuses them, or its server answers.
//!
//! SYNs that come while QEMU has no CPU wait there too, as many as have room: passt drops what the socket does not take. So its end
//! has as much as the host allows (`net.core.wmem_max`), hundreds of SYNs at least.
//!
//! It ends with the wire's other end, so with the machine, however that ends, and with us if there is no QEMU yet. On a network
//! of machines its switch calls, and calls again if it was started anew: passt ends with us only.
//!
//! Debian 12's looks without a pause at each client that gave up before the machine answered it, until it forgets that one
//! after ten seconds (an event of epoll(7) that is level-triggered and not taken; mended upstream in 2024). A machine
//! that is slow for want of CPU would have still less, and more clients would give up. So passt has less weight than QEMU
//! where both want a CPU, and all that it wants elsewhere.
//!
//! Where it does not start (on a host without a route, or where a user may not make
//! namespaces) QEMU's own network does its work, and we say why.

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::process::{Pid, getuid, setpriority_process};

use crate::machine::{Forward, Forwarder, Machine, Net, Origin, Protocol};
use crate::starter;

const PROGRAM: &str = "passt";
/// How long it may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);
/// A third of QEMU's weight (sched(7)).
const NICENESS: i32 = 5;
/// The station of QEMU's first card, unless it is told another.
pub const FIRST_STATION: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
/// One of this host's own choice that no card has.
const NOBODYS_STATION: [u8; 6] = [2, 0, 0, 0, 0, 0];
/// What QEMU reads at once of a card's stream (`NET_BUFSIZE`).
const QEMUS_BUFFER_BYTES: usize = 4096 + 65536;
/// More than Linux gives, so passt's end gets the most; passt asks as much for a QEMU that calls it.
const SEND_BUFFER_BYTES: usize = 1 << 30;
/// Ethernet's longest frame, without its check sequence.
const FRAME_BYTES_MAX: usize = 1514;
/// RARP (RFC 903), in which QEMU announces a machine that has moved, too.
const ETHERTYPE_RARP: [u8; 2] = [0x80, 0x35];
/// The shortest frame, without its check sequence.
const FRAME_BYTES_MIN: usize = 60;
/// The network in the machine.
const ADDRESSES: [&str; 8] = [
    "--address",
    "10.0.2.15",
    "--netmask",
    "24",
    "--gateway",
    "10.0.2.2",
    "--dns-forward",
    "10.0.2.3",
];

/// A passt that serves QEMU, or waits for its switch. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Passt {
    child: Child,
    /// Where it writes its number, once it serves.
    ready: PathBuf,
    log: PathBuf,
}

/// QEMU's end of a connection with passt.
pub(crate) type Wire = OwnedFd;

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
    /// Starts it for `machine`: for QEMU, which is to have the wire, or for the switch of its network, which calls. It is of use
    /// once [`Passt::wait_until_ready`] says so.
    pub(crate) fn start(machine: &Machine) -> io::Result<(Self, Option<Wire>)> {
        let (socket, log) = (machine.way_out_socket(), machine.state.join("passt.log"));
        let ready = machine.state.join("passt.pid");
        for old in [&socket, &log, &ready] {
            // What a machine of the same name left behind.
            let _ = fs::remove_file(old);
        }
        let (mut command, own, wire) = match machine.net {
            Net::Switched(_) => {
                let mut command = starter::bound_to_us(Path::new(PROGRAM));
                command.arg("--socket").arg(&socket);
                (command, None, None)
            }
            _ => {
                let boots = machine.origin == Origin::Boot;
                let (own, wire) = wire(machine.mac.unwrap_or(FIRST_STATION), boots)?;
                let mut command = Command::new(PROGRAM);
                // Those of 2024 and 2025 take no standard descriptor.
                command.arg("--fd").arg(own.as_raw_fd().to_string());
                (command, Some(own), Some(wire))
            }
        };
        command.arg("--foreground").arg("--log-file").arg(&log);
        command.arg("--pid").arg(&ready);
        command.args(addresses(&machine.net));
        command.args(port_arguments(&machine.forwards));
        if getuid().is_root() {
            // It gives up all capabilities; as `nobody` it could not reach our folder.
            command.args(["--runas", "0"]);
        }
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // A Ctrl-C at the terminal is not for it: the program may have answers to send before it ends.
        command.process_group(0);
        let child = starter::start(command, own)?;
        Ok((Self { child, ready, log }, wire))
    }

    /// Waits until it serves, its ports are open, and a switch can call.
    ///
    /// Errors: its last words.
    pub(crate) fn wait_until_ready(&mut self) -> Result<(), String> {
        let waited = self.wait();
        waited.map_err(|error| last_words(&self.log).unwrap_or_else(|| error.to_string()))?;
        // Not while we wait for it. Where it may not be, it works all the same.
        let _ = setpriority_process(Pid::from_raw(self.child.id() as i32), NICENESS);
        Ok(())
    }

    fn wait(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while fs::read(&self.ready).map_or(0, |text| text.len()) == 0 {
            if let Some(status) = self.child.try_wait()? {
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

/// passt's end and QEMU's. In the former waits the word that `station` is at the latter; in that, of a machine that `boots`, as much
/// as QEMU reads at once and then drops (see the module).
fn wire(station: [u8; 6], boots: bool) -> io::Result<(OwnedFd, Wire)> {
    let (mut passts, mut qemus) = UnixStream::pair()?;
    set_socket_send_buffer_size(&passts, SEND_BUFFER_BYTES)?;
    qemus.write_all(&framed(&announcement(station)))?;
    if boots {
        let mut frame = announcement(NOBODYS_STATION);
        frame.resize(FRAME_BYTES_MAX, 0);
        let framed = framed(&frame);
        passts.set_nonblocking(true)?;
        for _ in 0..QEMUS_BUFFER_BYTES.div_ceil(framed.len()) {
            // Where sockets have less room, fewer must do.
            let _ = passts.write(&framed);
        }
        passts.set_nonblocking(false)?;
    }
    Ok((passts.into(), qemus.into()))
}

/// As `-netdev stream` has it: a frame's length, and the frame.
fn framed(frame: &[u8]) -> Vec<u8> {
    [&(frame.len() as u32).to_be_bytes(), frame].concat()
}

/// The frame of a station that says no more than that it is there.
fn announcement(station: [u8; 6]) -> Vec<u8> {
    const BROADCAST: [u8; 6] = [0xff; 6];
    // Ethernet's addresses for IPv4's, and that it asks for its own.
    const REVERSE_REQUEST: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 3];
    let header = [&BROADCAST[..], &station, &ETHERTYPE_RARP, &REVERSE_REQUEST];
    let question = [&station[..], &[0; 4], &station, &[0; 4]];
    let mut frame = [header.concat(), question.concat()].concat();
    frame.resize(FRAME_BYTES_MIN, 0);
    frame
}

impl Drop for Passt {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
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
    use std::io::Read;
    use std::net::{Ipv4Addr, Shutdown};

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
    fn qemu_reads_at_once_what_it_drops_of_a_machine_that_boots_and_no_other() {
        for boots in [false, true] {
            let (passts, qemus) = wire([2, 0, 0, 0, 0, 7], boots).expect("sockets");
            let passts = UnixStream::from(passts);
            passts.shutdown(Shutdown::Write).expect("it is connected");
            let mut bytes = Vec::new();
            UnixStream::from(qemus)
                .read_to_end(&mut bytes)
                .expect("it has an end");
            assert_eq!(bytes.len() >= QEMUS_BUFFER_BYTES, boots);
            for framed in bytes.chunks(4 + FRAME_BYTES_MAX) {
                assert_eq!(framed.len(), 4 + FRAME_BYTES_MAX);
                assert_eq!(framed[..4], (FRAME_BYTES_MAX as u32).to_be_bytes());
                assert_eq!(framed[10..16], NOBODYS_STATION);
            }
        }
    }

    #[test]
    fn passt_reads_first_which_station_is_at_the_other_end() {
        let (passts, _qemus) = wire([2, 0, 0, 0, 0, 7], false).expect("sockets");
        let mut bytes = [0; 4 + FRAME_BYTES_MIN];
        UnixStream::from(passts)
            .read_exact(&mut bytes)
            .expect("it is there");
        assert_eq!(bytes[..4], [0, 0, 0, 60]);
        assert_eq!(bytes[4..16], [[0xff; 6], [2, 0, 0, 0, 0, 7]].concat());
        assert_eq!(bytes[16..26], [0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3]);
    }
}
