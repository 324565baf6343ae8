//! A script's lines.
//!
//! `[+SECONDS] EVENT`: time counts from the event before. What stands behind `#` is a
//! comment; those of the head tell the title and the paragraphs tested.

use base::Duration;

use inet::{Options, Shutdown};

use crate::notation::{Segment, number};

/// A script.
#[derive(Debug)]
pub struct Script {
    /// The comments before the first event.
    pub head: String,
    pub(crate) steps: Vec<Step>,
}

/// An event with its place and time.
#[derive(Debug)]
pub(crate) struct Step {
    /// Counted from one.
    pub line: usize,
    pub after: Duration,
    pub event: Event,
}

/// What happens, or must.
#[derive(Debug)]
pub(crate) enum Event {
    /// `< PACKET`
    Arrive(Packet),
    /// `> PACKET`
    Expect(Packet),
    /// A socket call.
    Call(Call),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Packet {
    Tcp(Segment),
    /// `icmp unreachable KIND [mtu N] [seq N]`, about the segment that starts at `seq`.
    Unreachable {
        code: u8,
        mtu: u16,
        seq: i64,
    },
    /// `icmp echo-request N` or `icmp echo-reply N` with so many bytes.
    Echo {
        is_request: bool,
        len: u32,
    },
    /// `udp PORT N`: a datagram of so many bytes for a port.
    Udp {
        port: u16,
        len: u32,
    },
}

/// A call, and what it must return. Errors have their names in `inet::Error`.
#[derive(Debug)]
pub(crate) enum Call {
    Listen,
    Accept {
        wanted: Result<(), String>,
    },
    Connect,
    Write {
        len: usize,
        wanted: Result<usize, String>,
    },
    Read {
        max: usize,
        wanted: Result<usize, String>,
    },
    Shutdown(Shutdown),
    Close,
    Abort,
    Set(fn(&mut Options, u32), u32),
    /// The connection's state, or CLOSED if the stack has forgotten it.
    State(String),
    /// The error that waits, or `none`.
    Error(String),
}

impl Script {
    /// Reads a script; an error names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let head = text.lines().take_while(|line| line.starts_with('#'));
        let head = head.collect::<Vec<_>>().join("\n");
        let mut steps = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if !line.is_empty() {
                let step = parse_step(index + 1, line);
                steps.push(step.map_err(|why| format!("line {}: {why}", index + 1))?);
            }
        }
        Ok(Self { head, steps })
    }
}

fn parse_step(line: usize, text: &str) -> Result<Step, String> {
    let (after, text) = match text.strip_prefix('+') {
        Some(timed) => {
            let (seconds, rest) = timed.split_once(char::is_whitespace).ok_or("no event")?;
            let seconds: f64 = number(seconds)?;
            let after = std::time::Duration::try_from_secs_f64(seconds);
            let after = after.map_err(|why| why.to_string())?.into();
            (after, rest.trim())
        }
        None => (Duration::ZERO, text),
    };
    let event = match text.split_at(1) {
        ("<", packet) => Event::Arrive(parse_packet(packet)?),
        (">", packet) => Event::Expect(parse_packet(packet)?),
        _ => Event::Call(parse_call(text)?),
    };
    Ok(Step { line, after, event })
}

fn parse_packet(text: &str) -> Result<Packet, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        ["icmp", "unreachable", kind, ref rest @ ..] => parse_unreachable(kind, rest),
        ["icmp", kind @ ("echo-request" | "echo-reply"), len] => Ok(Packet::Echo {
            is_request: kind == "echo-request",
            len: number(len)?,
        }),
        ["udp", port, len] => Ok(Packet::Udp {
            port: number(port)?,
            len: number(len)?,
        }),
        _ => Segment::parse(text.trim()).map(Packet::Tcp),
    }
}

fn parse_unreachable(kind: &str, rest: &[&str]) -> Result<Packet, String> {
    let code = match kind {
        "net" => 0,
        "host" => 1,
        "port" => 3,
        "frag-needed" => 4,
        "prohibited" => 13,
        _ => return Err(format!("`{kind}` is no reason of ICMP's")),
    };
    let (mut mtu, mut seq) = (0, 0);
    for pair in rest.chunks(2) {
        match pair {
            ["mtu", value] => mtu = number(value)?,
            ["seq", value] => seq = number(value)?,
            _ => return Err("after the reason come `mtu N` and `seq N`".into()),
        }
    }
    Ok(Packet::Unreachable { code, mtu, seq })
}

fn parse_call(text: &str) -> Result<Call, String> {
    let (call, result) = match text.split_once('=') {
        Some((call, result)) => (call, Some(result.trim())),
        None => (text, None),
    };
    let words: Vec<&str> = call.split_whitespace().collect();
    Ok(match (&words[..], result) {
        (["listen"], None) => Call::Listen,
        (["accept"], None) => Call::Accept { wanted: Ok(()) },
        (["accept"], Some(error)) => Call::Accept {
            wanted: Err(error.into()),
        },
        (["connect"], None) => Call::Connect,
        (["write", len], None) => Call::Write {
            len: number(len)?,
            wanted: Ok(number(len)?),
        },
        (["write", len], Some(result)) => Call::Write {
            len: number(len)?,
            wanted: count_or_error(result),
        },
        (["read", max], Some(result)) => Call::Read {
            max: number(max)?,
            wanted: count_or_error(result),
        },
        (["shutdown", "write"], None) => Call::Shutdown(Shutdown::Write),
        (["shutdown", "read"], None) => Call::Shutdown(Shutdown::Read),
        (["close"], None) => Call::Close,
        (["abort"], None) => Call::Abort,
        (["set", name, value], None) => Call::Set(setter(name)?, number(value)?),
        (["state", state], None) => Call::State((*state).into()),
        (["error", error], None) => Call::Error((*error).into()),
        _ => return Err(format!("`{text}` is no event")),
    })
}

fn count_or_error(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| text.to_string())
}

fn setter(name: &str) -> Result<fn(&mut Options, u32), String> {
    Ok(match name {
        "no_delay" => |options, value| options.no_delay = value != 0,
        "cork" => |options, value| options.cork = value != 0,
        "keepalive" => |options, value| options.keepalive = value != 0,
        "keep_idle" => |options, value| options.keep_idle_secs = value as u16,
        "keep_interval" => |options, value| options.keep_interval_secs = value as u16,
        "keep_count" => |options, value| options.keep_count = value as u8,
        "linger" => |options, value| options.linger_secs = Some(value as u16),
        "user_timeout_ms" => |options, value| options.user_timeout_ms = value,
        "recv_buffer" => |options, value| options.recv_buffer = value,
        "send_buffer" => |options, value| options.send_buffer = value,
        "syn_timeouts" => |options, value| options.syn_timeouts = value as u8,
        "defer_timeouts" => |options, value| options.defer_timeouts = value as u8,
        "window_clamp" => |options, value| options.window_clamp = value,
        "max_segment" => |options, value| options.max_segment = value as u16,
        _ => return Err(format!("`{name}` is no option of a socket")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_time_and_an_event() {
        let script = Script::parse("# Title\n# RFC 1\n\n+0.5 read 7 = WouldBlock # nothing yet\n");
        let script = script.expect("it is well formed");
        assert_eq!(script.head, "# Title\n# RFC 1");
        let step = &script.steps[0];
        assert_eq!((step.line, step.after), (4, Duration::from_millis(500)));
        let Event::Call(Call::Read {
            max: 7,
            wanted: Err(error),
        }) = &step.event
        else {
            panic!("{step:?}");
        };
        assert_eq!(error, "WouldBlock");
    }

    #[test]
    fn an_error_names_its_line() {
        for wrong in [
            "dance",
            "+x close",
            "+-1 close",
            "set mood 1",
            "< icmp unreachable moon",
        ] {
            let why = Script::parse(&format!("close\n{wrong}")).expect_err(wrong);
            assert!(why.starts_with("line 2: "), "{why}");
        }
    }
}
