//! `netstat`, `netstat -an`: sockets, their ends and their queues.

use std::fmt::Write;

use super::Flags;
use super::ends::end;
use crate::World;

/// A socket of a list in `/proc/net`.
struct Socket {
    local: String,
    remote: String,
    /// Linux's number of its state.
    state: u8,
    send_queue: u64,
    receive_queue: u64,
}

const IDLE: u8 = 7;
const LISTEN: u8 = 10;

/// illumos' names of TCP's states, by Linux's numbers from 1 on.
const STATES: [&str; 11] = [
    "ESTABLISHED",
    "SYN_SENT",
    "SYN_RECEIVED",
    "FIN_WAIT_1",
    "FIN_WAIT_2",
    "TIME_WAIT",
    "CLOSED",
    "CLOSE_WAIT",
    "LAST_ACK",
    "LISTEN",
    "CLOSING",
];

/// `sl local remote state send:receive ...`
fn parse(line: &str) -> Option<Socket> {
    let mut words = line.split_whitespace().skip(1);
    let local = end(words.next()?)?;
    let remote = end(words.next()?)?;
    let state = u8::from_str_radix(words.next()?, 16).ok()?;
    let (send, receive) = words.next()?.split_once(':')?;
    let queue = |digits| u64::from_str_radix(digits, 16).ok();
    Some(Socket {
        local,
        remote,
        state,
        send_queue: queue(send)?,
        receive_queue: queue(receive)?,
    })
}

fn read(path: &str, world: &mut World<'_>) -> Vec<Socket> {
    let text = world.files.read(path).unwrap_or_default();
    text.lines().skip(1).filter_map(parse).collect()
}

fn state_of(socket: &Socket) -> &'static str {
    let index = usize::from(socket.state).wrapping_sub(1);
    STATES.get(index).unwrap_or(&"UNKNOWN")
}

/// A listener's queue holds connections; it has nothing to send.
fn tcp_line(socket: &Socket, text: &mut String) {
    let send_queue = match socket.state {
        LISTEN => 0,
        _ => socket.send_queue,
    };
    _ = writeln!(
        text,
        "{:<20} {:<20} {send_queue:7} {:7} {}",
        socket.local,
        socket.remote,
        socket.receive_queue,
        state_of(socket)
    );
}

fn udp_line(socket: &Socket, text: &mut String) {
    let (remote, state) = match socket.state {
        IDLE => ("", "Idle"),
        _ => (socket.remote.as_str(), "Connected"),
    };
    _ = writeln!(text, "{:<20} {remote:<20} {state}", socket.local);
}

const TCP_HEADS: &str = "   Local Address        Remote Address     Send-Q  Recv-Q State\n\
    -------------------- -------------------- ------- ------- -----------\n";
const UDP_HEADS: &str = "   Local Address        Remote Address    State\n\
    -------------------- -------------------- ----------\n";

/// Shows the sockets of IP; without `-a` only those that have a peer.
pub fn show(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let mut text = String::new();
    for (family, suffix) in [("IPv4", ""), ("IPv6", "6")] {
        for protocol in ["udp", "tcp"].into_iter().filter(|name| flags.wants(name)) {
            let sockets = read(&format!("/proc/net/{protocol}{suffix}"), world);
            let is_shown =
                |socket: &&Socket| flags.is_all || !matches!(socket.state, IDLE | LISTEN);
            let shown: Vec<&Socket> = sockets.iter().filter(is_shown).collect();
            if shown.is_empty() {
                continue;
            }
            let is_tcp = protocol == "tcp";
            let heads = if is_tcp { TCP_HEADS } else { UDP_HEADS };
            let line = if is_tcp { tcp_line } else { udp_line };
            _ = writeln!(text, "{}: {family}", protocol.to_uppercase());
            text.push_str(heads);
            shown.iter().for_each(|socket| line(socket, &mut text));
            text.push('\n');
        }
    }
    world.console.print(&text);
    Ok(())
}
