//! Plays a script against a stack.
//!
//! Before each event the clock runs to the event's time; what the stack sends on the way
//! must be the next packet expected. A packet may come a little late, since the
//! stack's timers have ticks, but never early.

use std::collections::VecDeque;

use base::{Duration, Instant};
use inet::{Config, Endpoint, Offloads, SocketId, State, Transport};
use sim::Host;
use wire::TcpFlags;

use crate::frame::{self, Names};
use crate::notation::{Segment, TcpOption};
use crate::pattern;
use crate::script::{Call, Event, Packet, Script};

const SERVER_PORT: u16 = 80;
const CLIENT_PORT: u16 = 50_000;
/// How much later than asked for a packet may come, and how much earlier by rounding.
const LATE_MAX: Duration = Duration::from_millis(3);
const EARLY_MAX: Duration = Duration::from_micros(10);
/// Enough for any window.
const BUFFERS: usize = 2048;
/// Timers that may run between two events.
const TIMERS_MAX: u32 = 10_000;

struct Play {
    host: Host,
    names: Names,
    /// The time of the last event.
    now: Instant,
    sent: VecDeque<(Instant, Packet)>,
    listener: Option<SocketId>,
    socket: Option<SocketId>,
    written: u32,
    read: u32,
}

/// Runs a script to its end; an error names the line and says what happened instead.
pub fn run(script: &Script) -> Result<(), String> {
    let mut play = Play::new();
    for step in &script.steps {
        play.step(step.after, &step.event)
            .map_err(|why| format!("line {}: {why}", step.line))?;
    }
    play.expect_silence()
        .map_err(|why| format!("at the end: {why}"))
}

impl Play {
    fn new() -> Self {
        let mut host = Host::new(1, 1, Offloads::default(), Config::default(), BUFFERS);
        host.env.now = Instant::from_millis(1000);
        Self {
            now: host.env.now,
            host,
            names: Names {
                local_port: SERVER_PORT,
                peer_port: CLIENT_PORT,
                isn: wire::Seq(0),
                clock: 0,
            },
            sent: VecDeque::new(),
            listener: None,
            socket: None,
            written: 0,
            read: 0,
        }
    }

    fn step(&mut self, after: Duration, event: &Event) -> Result<(), String> {
        let at = self.now + after;
        if let Event::Expect(packet) = event {
            return self.expect(at, packet);
        }
        while self.sent.is_empty() && self.run_timer(at)? {}
        self.expect_silence()?;
        self.now = at;
        self.host.env.now = at;
        match event {
            Event::Arrive(packet) => {
                let frame = frame::of_peer(packet, &self.names);
                self.host.receive(&frame);
                self.host.stack.flush(&mut self.host.env);
            }
            Event::Call(call) => self.call(call)?,
            Event::Expect(_) => {}
        }
        self.listen_in()
    }

    fn expect(&mut self, at: Instant, wanted: &Packet) -> Result<(), String> {
        while self.sent.is_empty() && self.run_timer(at + LATE_MAX)? {}
        let (sent_at, packet) = self.sent.pop_front().ok_or("nothing was sent")?;
        let is_in_time = sent_at + EARLY_MAX >= at && sent_at <= at + LATE_MAX;
        if !is_in_time {
            let after = sent_at.since(self.now).as_nanos() as f64 / 1e9;
            return Err(format!("sent at +{after:.3}: {packet:?}"));
        }
        self.now = sent_at.max(self.now);
        match is_as_wanted(wanted, &packet) {
            true => Ok(()),
            false => Err(format!("sent was {packet:?}")),
        }
    }

    /// Runs the next timer, unless it is due after `end`; returns whether it did.
    fn run_timer(&mut self, end: Instant) -> Result<bool, String> {
        for _ in 0..TIMERS_MAX {
            let Some(due) = self.host.stack.next_deadline().filter(|due| *due <= end) else {
                return Ok(false);
            };
            self.host.env.now = self.host.env.now.max(due);
            self.host.stack.expire(&mut self.host.env);
            self.listen_in()?;
            if !self.sent.is_empty() {
                return Ok(true);
            }
        }
        Err("the stack's timers never rest".into())
    }

    fn expect_silence(&mut self) -> Result<(), String> {
        match self.sent.pop_front() {
            None => Ok(()),
            Some((at, packet)) => {
                let after = at.since(self.now).as_nanos() as f64 / 1e9;
                Err(format!("not expected, at +{after:.3}: {packet:?}"))
            }
        }
    }

    /// Takes what the stack has sent, and answers its ARP requests.
    fn listen_in(&mut self) -> Result<(), String> {
        loop {
            let sent = std::mem::take(&mut self.host.env.sent);
            if sent.is_empty() {
                return Ok(());
            }
            for bytes in sent.iter().flat_map(sim::cut) {
                if let Some(answer) = frame::arp_answer(&bytes) {
                    self.host.receive(&answer);
                    self.host.stack.flush(&mut self.host.env);
                } else {
                    let packet = frame::of_stack(&bytes, &mut self.names)?;
                    self.sent.push_back((self.host.env.now, packet));
                }
            }
        }
    }

    fn call(&mut self, call: &Call) -> Result<(), String> {
        match call {
            Call::Listen => self.listen(),
            Call::Accept { wanted } => self.accept(wanted),
            Call::Connect => self.connect(),
            Call::Write { len, wanted } => {
                let got = self.write(*len)?;
                compare(wanted, got)
            }
            Call::Read { max, wanted } => {
                let got = self.receive(*max)?;
                compare(wanted, got)
            }
            Call::Shutdown(how) => {
                self.on_socket(|host, socket| host.stack.shutdown(&mut host.env, socket, *how))
            }
            Call::Close => {
                self.on_socket(|host, socket| host.stack.close(&mut host.env, socket))?;
                self.socket = None;
                Ok(())
            }
            Call::Abort => {
                self.on_socket(|host, socket| host.stack.abort(&mut host.env, socket))?;
                self.socket = None;
                Ok(())
            }
            Call::Set(set, value) => {
                // Before `connect` the socket does not exist, so the first call makes it.
                self.open()?;
                self.on_socket(|host, socket| {
                    host.stack
                        .configure(&mut host.env, socket, |options| set(options, *value))
                })
            }
            Call::State(wanted) => is_same(wanted, &self.state()),
            Call::Error(wanted) => {
                let socket = self.socket.ok_or("no socket")?;
                let error = self.host.stack.take_error(socket);
                is_same(
                    wanted,
                    &error.map_or("none".into(), |error| format!("{error:?}")),
                )
            }
        }
    }

    fn open(&mut self) -> Result<SocketId, String> {
        if let Some(socket) = self.socket {
            return Ok(socket);
        }
        let socket = self
            .host
            .stack
            .open(Transport::Tcp)
            .map_err(|why| format!("{why:?}"))?;
        self.socket = Some(socket);
        Ok(socket)
    }

    fn listen(&mut self) -> Result<(), String> {
        let socket = self.open()?;
        let stack = &mut self.host.stack;
        let local = Endpoint {
            port: SERVER_PORT,
            ..Endpoint::ANY
        };
        stack
            .bind(socket, local)
            .map_err(|why| format!("{why:?}"))?;
        stack.listen(socket, 16).map_err(|why| format!("{why:?}"))?;
        (self.listener, self.socket) = (Some(socket), None);
        Ok(())
    }

    fn accept(&mut self, wanted: &Result<(), String>) -> Result<(), String> {
        let listener = self.listener.ok_or("nobody listens")?;
        let accepted = self.host.stack.accept(&mut self.host.env, listener);
        self.socket = accepted.ok().or(self.socket);
        compare(wanted, accepted.map(drop))
    }

    fn connect(&mut self) -> Result<(), String> {
        self.open()?;
        let to = Endpoint::v4(Host::address(2), SERVER_PORT);
        self.on_socket(|host, socket| host.stack.connect(&mut host.env, socket, to))
    }

    fn on_socket(
        &mut self,
        call: impl FnOnce(&mut Host, SocketId) -> Result<(), inet::Error>,
    ) -> Result<(), String> {
        let socket = self.socket.ok_or("no socket")?;
        call(&mut self.host, socket).map_err(|why| format!("{why:?}"))
    }

    fn write(&mut self, len: usize) -> Result<Result<usize, inet::Error>, String> {
        let socket = self.socket.ok_or("no socket")?;
        let Host { stack, env } = &mut self.host;
        let mut at = self.written;
        let written = stack.send_with(env, socket, len, &mut |space| {
            space.iter_mut().for_each(|byte| {
                *byte = pattern(at);
                at += 1;
            });
            space.len()
        });
        self.written = at;
        Ok(written)
    }

    fn receive(&mut self, max: usize) -> Result<Result<usize, inet::Error>, String> {
        let socket = self.socket.ok_or("no socket")?;
        let Host { stack, env } = &mut self.host;
        let (mut at, mut is_right) = (self.read, true);
        let read = stack.recv_with(env, socket, max, &mut |bytes| {
            for byte in bytes {
                is_right &= *byte == pattern(at);
                at += 1;
            }
            bytes.len()
        });
        self.read = at;
        match is_right {
            true => Ok(read),
            false => Err("the bytes read are not those of the stream".into()),
        }
    }

    /// The state of the connection with the peer, whoever holds it.
    fn state(&self) -> String {
        let mut entries = self.host.stack.connections();
        let found = entries.find(|entry| {
            entry.remote.port == self.names.peer_port && entry.state != State::Listen
        });
        match found.map_or(State::Closed, |entry| entry.state) {
            State::SynSent => "SYN-SENT",
            State::SynReceived => "SYN-RECEIVED",
            State::Established => "ESTABLISHED",
            State::FinWait1 => "FIN-WAIT-1",
            State::FinWait2 => "FIN-WAIT-2",
            State::TimeWait => "TIME-WAIT",
            State::CloseWait => "CLOSE-WAIT",
            State::LastAck => "LAST-ACK",
            State::Closing => "CLOSING",
            State::Closed | State::Listen => "CLOSED",
        }
        .into()
    }
}

fn is_same(wanted: &str, got: &str) -> Result<(), String> {
    match wanted == got {
        true => Ok(()),
        false => Err(format!("it is {got}")),
    }
}

fn compare<T: PartialEq + std::fmt::Debug>(
    wanted: &Result<T, String>,
    got: Result<T, inet::Error>,
) -> Result<(), String> {
    let got = got.map_err(|error| format!("{error:?}"));
    match *wanted == got {
        true => Ok(()),
        false => Err(format!("it returned {got:?}")),
    }
}

/// Compares what the script says; what it leaves out may be anything. PSH is left out always:
/// RFC 9293 3.9.1.2 leaves it to the sender.
fn is_as_wanted(wanted: &Packet, sent: &Packet) -> bool {
    let (Packet::Tcp(wanted), Packet::Tcp(sent)) = (wanted, sent) else {
        return wanted == sent;
    };
    let flags = |segment: &Segment| segment.flags.0 & !TcpFlags::PSH.0;
    let is_option = |wanted: &TcpOption| {
        let sent = sent.options.as_deref().unwrap_or_default();
        sent.iter().any(|sent| is_option_as_wanted(wanted, sent))
    };
    let count = |segment: &Segment| segment.options.as_ref().map_or(0, Vec::len);
    flags(wanted) == flags(sent)
        && (wanted.start, wanted.len, wanted.ack) == (sent.start, sent.len, sent.ack)
        && (wanted.window.is_none() || wanted.window == sent.window)
        && wanted
            .options
            .as_ref()
            .is_none_or(|options| options.len() == count(sent) && options.iter().all(is_option))
}

fn is_option_as_wanted(wanted: &TcpOption, sent: &TcpOption) -> bool {
    let is_number = |wanted: &Option<u32>, sent: &Option<u32>| wanted.is_none() || wanted == sent;
    match (wanted, sent) {
        (TcpOption::Mss(wanted), TcpOption::Mss(sent))
        | (TcpOption::WindowScale(wanted), TcpOption::WindowScale(sent)) => is_number(wanted, sent),
        (TcpOption::Timestamps(value, echo), TcpOption::Timestamps(sent, echoed)) => {
            is_number(value, sent) && is_number(echo, echoed)
        }
        _ => wanted == sent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDSHAKE: &str = "listen
        +0 < S 0:0(0) win 1000 <mss 1460>
        +0 > S. 0:0(0) ack 1
        +0 < . 1:1(0) ack 1 win 1000
        accept\n";

    fn play(rest: &str) -> Result<(), String> {
        run(&Script::parse(&format!("{HANDSHAKE}{rest}")).expect("it is well formed"))
    }

    fn fails_with(rest: &str, words: &str) {
        let why = play(rest).expect_err(rest);
        assert!(why.contains(words), "{rest}: {why}");
    }

    #[test]
    fn what_happens_as_the_script_says_passes() {
        play("write 10\n+0 > P. 1:11(10) ack 1\n+0.1 < . 1:1(0) ack 11\nstate ESTABLISHED")
            .expect("it is what the stack does");
    }

    #[test]
    fn a_packet_that_never_comes_fails() {
        fails_with("+0 > . 1:1(0) ack 1", "line 6: nothing was sent");
    }

    #[test]
    fn a_packet_that_nobody_expects_fails_during_and_at_the_end() {
        fails_with("write 10\n+1 state ESTABLISHED", "line 7: not expected");
        fails_with("write 10", "at the end: not expected");
    }

    #[test]
    fn a_packet_at_another_time_or_with_other_fields_fails() {
        fails_with(
            "write 10\n+0.5 > P. 1:11(10) ack 1",
            "line 7: sent at +0.000",
        );
        for packet in ["P. 1:10(9) ack 1", "P. 1:11(10) ack 2", "F. 1:11(10) ack 1"] {
            fails_with(&format!("write 10\n+0 > {packet}"), "line 7: sent was");
        }
        fails_with(
            "write 10\n+0 > P. 1:11(10) ack 1 <mss 5>",
            "line 7: sent was",
        );
    }

    #[test]
    fn another_result_of_a_call_fails() {
        fails_with("read 10 = 5", "line 6: it returned Err(\"WouldBlock\")");
        fails_with("state TIME-WAIT", "line 6: it is ESTABLISHED");
        fails_with("error TimedOut", "line 6: it is none");
    }
}
