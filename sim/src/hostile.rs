//! A host under a hostile peer, driven by arbitrary bytes.
//!
//! The bytes are a program: what the local programs do, how time passes, and what the peer
//! sends. Half of its frames are noise; the others are TCP segments whose numbers lie near
//! those that the stack has just used, since noise never gets past the window check. All
//! frames count as verified, so that checksums stand in nobody's way. Nothing may
//! panic, loop or leak, whatever the bytes say.

use base::Duration;
use inet::{Algorithm, Config, Ecn, Endpoint, Offloads, Shutdown, SocketId, Transport};
use wire::{
    ETHERNET_HEADER_BYTES, Ipv4Repr, Ipv4View, Protocol, SackBlock, Seq, TcpFlags, TcpOptions,
    TcpRepr, TcpView, Timestamps,
};

use crate::frame;
use crate::host::Host;
use crate::lan::station;

/// Connections that one program may hold.
const SOCKETS_MAX: usize = 16;
const PORT: u16 = 80;
/// Few, so that memory runs out too.
const BUFFERS: usize = 128;

/// Arbitrary bytes, taken from the front; zeros when they have run out.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// What the stack has last said on one connection.
#[derive(Clone, Copy)]
struct Heard {
    local_port: u16,
    remote_port: u16,
    /// Behind its last byte, and what it expects.
    seq: Seq,
    ack: Seq,
    clock: u32,
}

struct Siege {
    host: Host,
    listener: SocketId,
    sockets: Vec<SocketId>,
    heard: Vec<Heard>,
}

/// Runs a program to its end, and until the host is quiet.
pub fn besiege(program: &[u8]) {
    let mut siege = Siege::new();
    let mut script = Script(program);
    while !script.0.is_empty() {
        siege.step(&mut script);
        siege.listen_in();
    }
    siege.end();
}

impl Siege {
    fn new() -> Self {
        let config = Config {
            half_open_max: 4,
            time_waits_max: 4,
            orphans_max: 4,
            sockets_max: 64,
            send_buffer_max: 1 << 20,
            recv_buffer_max: 1 << 20,
            buffer_growth_max: 1 << 20,
            ecn: Ecn::Ask,
            ..Config::default()
        };
        let offloads = Offloads {
            checksum: true,
            segment_v4: true,
            segment_v6: true,
        };
        let mut host = Host::new(1, 1, offloads, config, BUFFERS);
        let listener = host.stack.open(Transport::Tcp).expect("a socket");
        host.stack
            .bind(
                listener,
                Endpoint {
                    port: PORT,
                    ..Endpoint::ANY
                },
            )
            .expect("a free port");
        host.stack.listen(listener, 4).expect("a bound socket");
        Self {
            host,
            listener,
            sockets: Vec::new(),
            heard: Vec::new(),
        }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.byte() % 8 {
            0 => self.act(script),
            1 => self.wait(Duration::from_millis(u64::from(script.byte()))),
            2 => self.wait(Duration::from_secs(u64::from(script.byte()))),
            3 => {
                let len = usize::from(script.word() % 1600);
                self.receive(script.bytes(len).to_vec());
            }
            4 => self.receive_packet(script),
            _ => self.receive_segment(script),
        }
    }

    fn wait(&mut self, time: Duration) {
        let Host { stack, env } = &mut self.host;
        let end = env.now + time;
        while let Some(due) = stack.next_deadline().filter(|due| *due <= end) {
            env.now = env.now.max(due);
            stack.expire(env);
        }
        env.now = end;
        stack.expire(env);
    }

    /// What a local program does.
    fn act(&mut self, script: &mut Script<'_>) {
        let Host { stack, env } = &mut self.host;
        let (what, which, amount) = (script.byte(), script.byte(), usize::from(script.word()));
        if what.is_multiple_of(8) {
            let accepted = stack.accept(env, self.listener).ok();
            let opened = || {
                let socket = stack.open(Transport::Tcp).ok()?;
                let to = Endpoint::v4(Host::address(2 + which % 2), 1 + u16::from(which));
                stack.connect(env, socket, to).ok();
                Some(socket)
            };
            if self.sockets.len() < SOCKETS_MAX {
                self.sockets.extend(accepted.or_else(opened));
            }
            return;
        }
        let Some(at) = usize::from(which).checked_rem(self.sockets.len()) else {
            return;
        };
        let socket = self.sockets[at];
        // Every error is an answer.
        match what % 8 {
            1 | 2 => drop(stack.send_with(env, socket, amount, &mut |space| {
                space.fill(which);
                space.len().min(amount)
            })),
            3 => drop(stack.recv_with(env, socket, amount, &mut |bytes| bytes.len())),
            4 => drop(stack.recv_chain(env, socket, amount)),
            5 => drop(stack.shutdown(env, socket, [Shutdown::Read, Shutdown::Write][amount % 2])),
            6 => drop(stack.configure(env, socket, |options| {
                (options.no_delay, options.cork) = (amount & 1 != 0, amount & 2 != 0);
                (options.keepalive, options.keep_idle_secs) = (amount & 4 != 0, 3);
                options.recv_buffer = amount as u32 * 4;
                options.send_buffer = amount as u32 * 4;
                options.linger_secs = (amount & 8 != 0).then_some(0);
                options.congestion = Algorithm::ALL[amount / 16 % 3];
            })),
            _ => {
                self.sockets.swap_remove(at);
                stack.close(env, socket).expect("our socket");
            }
        }
    }

    fn receive(&mut self, frame: Vec<u8>) {
        self.host.receive_torn(&frame);
        if frame.len().is_multiple_of(2) {
            self.host.stack.flush(&mut self.host.env);
        }
    }

    /// A packet of any protocol with a good header.
    fn receive_packet(&mut self, script: &mut Script<'_>) {
        let protocol = [
            Protocol::Icmp,
            Protocol::Udp,
            Protocol::Tcp,
            Protocol::Other(99),
        ];
        let protocol = protocol[usize::from(script.byte() % 4)];
        let len = usize::from(script.byte());
        let payload = script.bytes(len).to_vec();
        self.receive_ip(protocol, &payload, 0);
    }

    fn receive_ip(&mut self, protocol: Protocol, payload: &[u8], tos: u8) {
        let header = frame::header(Host::address(2), Host::address(1), protocol);
        let header = Ipv4Repr { tos, ..header };
        self.receive(frame::ipv4(station(1), station(2), header, payload));
    }

    /// A segment that looks as if it belonged to a connection.
    fn receive_segment(&mut self, script: &mut Script<'_>) {
        let which = usize::from(script.byte());
        let heard = which
            .checked_rem(self.heard.len() + 1)
            .and_then(|at| self.heard.get(at))
            .copied();
        let heard = heard.unwrap_or(Heard {
            local_port: PORT,
            remote_port: u16::from(script.byte()),
            seq: Seq(0),
            ack: Seq(u32::from(script.word())),
            clock: 0,
        });
        // Mostly zero: the number that the stack expects.
        let near = |script: &mut Script<'_>| match script.byte() {
            byte @ 0..=63 => (i32::from(byte as i8) - 32) * 731,
            _ => 0,
        };
        let shift = |seq: Seq, by: i32| Seq(seq.0.wrapping_add_signed(by));
        let mut options = TcpOptions::default();
        let features = script.byte();
        if features & 1 != 0 {
            let value = u32::from(script.byte());
            options.timestamps = Some(Timestamps {
                value,
                echo: heard.clock,
            });
        }
        if features & 2 != 0 {
            let start = shift(heard.seq, near(script));
            options.sack.push(SackBlock {
                start,
                end: shift(start, near(script)),
            });
        }
        let flags = TcpFlags(script.byte());
        if flags.has(TcpFlags::SYN) && features & 4 != 0 {
            options.mss = Some(script.word());
            options.window_scale = Some(script.byte());
            options.sack_permitted = features & 8 != 0;
        }
        let repr = TcpRepr {
            src_port: heard.remote_port,
            dst_port: heard.local_port,
            seq: shift(heard.ack, near(script)),
            ack: shift(heard.seq, near(script)),
            flags,
            window: script.word(),
            options,
        };
        let mut segment = vec![0; repr.header_len()];
        repr.emit(&mut segment);
        let len = usize::from(script.byte()) * 5;
        segment.extend(std::iter::repeat_n(features, len));
        self.receive_ip(Protocol::Tcp, &segment, features >> 6);
    }

    /// Remembers what the stack has said.
    fn listen_in(&mut self) {
        for frame in std::mem::take(&mut self.host.env.sent) {
            let mut bytes = vec![0; frame.chain.len()];
            frame.chain.copy_to_slice(0, &mut bytes);
            let packet = bytes.get(ETHERNET_HEADER_BYTES..).unwrap_or_default();
            let Ok(ip) = Ipv4View::parse(packet, packet.len()) else {
                continue;
            };
            let Ok(tcp) = TcpView::parse(&packet[ip.header().len()..]) else {
                continue;
            };
            let payload = packet.len() - ip.header().len() - tcp.header_len();
            let flags = tcp.flags();
            let controls = u8::from(flags.has(TcpFlags::SYN)) + u8::from(flags.has(TcpFlags::FIN));
            let heard = Heard {
                local_port: tcp.src_port(),
                remote_port: tcp.dst_port(),
                seq: tcp.seq() + payload as u32 + u32::from(controls),
                ack: tcp.ack(),
                clock: tcp.options().timestamps.map_or(0, |stamp| stamp.value),
            };
            self.heard.retain(|old| {
                (old.local_port, old.remote_port) != (heard.local_port, heard.remote_port)
            });
            self.heard.insert(0, heard);
            self.heard.truncate(8);
        }
    }

    /// All programs end; then the host must forget everything by itself.
    fn end(mut self) {
        for socket in std::mem::take(&mut self.sockets) {
            self.host
                .stack
                .close(&mut self.host.env, socket)
                .expect("our socket");
        }
        self.host
            .stack
            .close(&mut self.host.env, self.listener)
            .expect("our listener");
        self.wait(Duration::from_secs(3600));
        self.host.env.sent.clear();
        assert_eq!(self.host.stack.sockets_used(), 0, "sockets are left");
        assert_eq!(self.host.stack.time_waits(), 0, "a TIME_WAIT never ends");
        assert_eq!(self.host.env.pool.used(), 0, "buffers are left");
    }
}
