//! /proc/net/tcp_events: the last things that went wrong with TCP, for `tcpretrans`,
//! `tcptimewait` and `tcpdrop`.
//!
//! A line of heads, then a line for each event, the oldest first. Serials of one kind have no
//! gaps, so a reader who comes again knows what is new and what it missed. Times are nanoseconds since
//! the boot. The file is not Linux's.

use core::fmt::{self, Display, Formatter, Result, Write};
use core::net::SocketAddr;

use inet::{Endpoint, Event, State};
use wire::TcpFlags;

use vfs::pseudo::Text;

/// Writes the file.
pub fn generate(text: &mut Text) -> Result {
    text.push_str("SERIAL TIME KIND REASON STATE FLAGS LOCAL REMOTE\n");
    net::current_stack()
        .journal()
        .iter()
        .try_for_each(|event| line(event, text))
}

fn line(event: &Event, text: &mut Text) -> Result {
    let (kind, reason) = (event.what.kind().name(), event.what.reason());
    writeln!(
        text,
        "{} {} {kind} {reason} {} {} {} {}",
        event.serial,
        event.at.as_nanos(),
        state(event.state),
        Flags(event.flags),
        address(&event.local),
        address(&event.remote)
    )
}

fn address(end: &Endpoint) -> SocketAddr {
    SocketAddr::new(end.addr, end.port)
}

/// As Linux's tools call it.
fn state(state: State) -> &'static str {
    match state {
        State::Established => "ESTABLISHED",
        State::SynSent => "SYN_SENT",
        State::SynReceived => "SYN_RECV",
        State::FinWait1 => "FIN_WAIT1",
        State::FinWait2 => "FIN_WAIT2",
        State::TimeWait => "TIME_WAIT",
        State::Closed => "CLOSE",
        State::CloseWait => "CLOSE_WAIT",
        State::LastAck => "LAST_ACK",
        State::Listen => "LISTEN",
        State::Closing => "CLOSING",
    }
}

/// Flags as sniffers write them: `S`, `F.`, and `-` for none.
struct Flags(TcpFlags);

impl Display for Flags {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let marks = [
            (TcpFlags::FIN, 'F'),
            (TcpFlags::SYN, 'S'),
            (TcpFlags::RST, 'R'),
            (TcpFlags::PSH, 'P'),
            (TcpFlags::ACK, '.'),
        ];
        let mut present = marks
            .iter()
            .filter(|(flag, _)| self.0.has(*flag))
            .peekable();
        if present.peek().is_none() {
            return f.write_char('-');
        }
        present.try_for_each(|(_, mark)| f.write_char(*mark))
    }
}
