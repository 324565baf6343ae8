//! getsockopt, setsockopt: the options that the stack has.
//!
//! The kernel's socket behind the number was asked before and has refused what is wrong; it also
//! keeps what we have no use for. What it and the stack both have is asked of the stack.

use inet::{Options, PathDiscovery, State, Transport};

use crate::ancillary::{UDP_SEGMENT, Wanted};
use crate::errno::{Errno, Result};
use crate::host::{Host, Link};
use crate::open::{Direction, Open};
use crate::tcp_info;

/// A value as it lies in the program's memory.
pub type OptionBytes = Vec<u8>;

const NANOS_PER_SEC: u64 = 1_000_000_000;
const NANOS_PER_MICRO: u64 = 1000;
/// Seconds of the kernel's limit on what fits a timeout.
const SECONDS_MAX: u64 = u64::MAX / NANOS_PER_SEC - 1;

impl<L: Link> Host<L> {
    /// The value of an option; `None` if the kernel's socket knows it.
    pub fn option(&mut self, open: &Open, level: i32, name: i32) -> Option<Result<OptionBytes>> {
        if let Some(direction) = timeout_of(level, name) {
            let nanos = open.timeout_nanos(direction).unwrap_or(0);
            return Some(Ok(timeval(nanos)));
        }
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_ERROR) => {
                let error = self.parts().0.take_error(open.id());
                self.refresh(open);
                Some(Ok(
                    int(error.map_or(0, |error| Errno::from(error).number())),
                ))
            }
            (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => {
                let is_listening = self.parts().0.state(open.id()) == Ok(State::Listen);
                Some(Ok(int(is_listening.into())))
            }
            (libc::SOL_SOCKET, libc::SO_MEMINFO) => Some(self.memory(open)),
            (libc::IPPROTO_IP, libc::IP_MTU) => {
                let (stack, _) = self.parts();
                let mtu = stack.path_mtu(stack.remote(open.id()).ok()?.addr);
                Some(Ok(int(mtu.cast_signed())))
            }
            (libc::IPPROTO_TCP, libc::TCP_INFO) => Some(self.tcp_info(open)),
            _ => {
                let options = *self.parts().0.options(open.id()).ok()?;
                value_of(&options, level, name).map(Ok)
            }
        }
    }

    fn tcp_info(&mut self, open: &Open) -> Result<OptionBytes> {
        let (stack, _) = self.parts();
        if stack.state(open.id())? == State::Listen {
            let (waiting, backlog) = stack.accept_queue(open.id())?;
            return Ok(tcp_info::of_listener(waiting, backlog));
        }
        Ok(tcp_info::encode(&stack.info(open.id())?))
    }

    /// The words of SK_MEMINFO_*: no memory is promised, or waits elsewhere.
    fn memory(&mut self, open: &Open) -> Result<OptionBytes> {
        let (stack, _) = self.parts();
        let options = *stack.options(open.id())?;
        let (received, sending, drops) = match open.transport {
            Transport::Udp => {
                let (received, drops) = stack.datagram_memory(open.id())?;
                (received, 0, drops)
            }
            // A listener holds nothing.
            Transport::Tcp => {
                let unread = stack.unread(open.id()).unwrap_or(0);
                (unread, stack.unsent(open.id()).unwrap_or(0), 0)
            }
        };
        let [received, sending] = [received, sending].map(|bytes| bytes as u32);
        let (room, limit) = (options.recv_buffer, options.send_buffer);
        let words = [received, room, sending, limit, 0, sending, 0, 0, drops];
        Ok(words.map(u32::to_ne_bytes).as_flattened().to_vec())
    }

    /// The kernel's socket has taken this value; of [`is_made`] options it is what the kernel made of it.
    ///
    /// Errors: `NO_OPTION` for what the kernel would do to frames that it never sees.
    pub fn set_option(&mut self, open: &Open, level: i32, name: i32, value: &[u8]) -> Result<()> {
        if let Some(direction) = timeout_of(level, name) {
            open.set_timeout_nanos(direction, nanos_of(value));
            return Ok(());
        }
        if is_kernels_only(level, name) {
            return Err(Errno::NO_OPTION);
        }
        if Wanted::has_option(level, name) {
            open.set_wanted(None);
            return Ok(());
        }
        let Some(number) = number_of(value) else {
            return Ok(());
        };
        let is_stream = open.transport == Transport::Tcp;
        let second = number_of(value.get(4..).unwrap_or_default()).unwrap_or(0);
        let (stack, world) = self.parts();
        // A connection keeps a clamp, larger or smaller.
        let is_clamp_gone = (level, name, number) == (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, 0);
        if is_stream && is_clamp_gone && stack.state(open.id())? != State::Closed {
            return Err(Errno::INVALID);
        }
        if is_stream && (level, name) == (libc::IPPROTO_TCP, libc::TCP_CORK) {
            stack.cork(world, open.id(), number != 0)?;
        } else {
            stack.configure(world, open.id(), |options| {
                change(options, (level, name), number, second);
                if is_stream {
                    options.tos &= !ECN_BITS;
                }
            })?;
            self.refresh(open);
        }
        self.after_sending();
        Ok(())
    }
}

/// Options of which the kernel's socket keeps another number than it is given.
pub fn is_made(level: i32, name: i32) -> bool {
    matches!(
        (level, name),
        (libc::SOL_SOCKET, libc::SO_SNDBUF | libc::SO_RCVBUF)
            | (libc::IPPROTO_IP, libc::IP_TTL | libc::IP_TOS)
            | (
                libc::IPPROTO_TCP,
                libc::TCP_WINDOW_CLAMP | libc::TCP_DEFER_ACCEPT
            )
    )
}

/// Options that say when a stream's bytes leave: nobody but the stack needs to know of them, and servers set them for each
/// answer.
pub fn is_streams_own(level: i32, name: i32) -> bool {
    level == libc::IPPROTO_TCP && matches!(name, libc::TCP_CORK | libc::TCP_NODELAY)
}

/// A filter for what arrives, which only the kernel's sockets have.
pub fn is_filter(level: i32, name: i32) -> bool {
    level == libc::SOL_SOCKET && matches!(name, libc::SO_ATTACH_FILTER | libc::SO_ATTACH_BPF)
}

/// Options that would have no effect, on which programs rely.
fn is_kernels_only(level: i32, name: i32) -> bool {
    is_filter(level, name) || (level, name) == (libc::SOL_SOCKET, libc::SO_ZEROCOPY)
}

fn timeout_of(level: i32, name: i32) -> Option<Direction> {
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_RCVTIMEO) => Some(Direction::Receive),
        (libc::SOL_SOCKET, libc::SO_SNDTIMEO) => Some(Direction::Send),
        _ => None,
    }
}

fn int(number: i32) -> OptionBytes {
    number.to_ne_bytes().to_vec()
}

/// A C `int`, of which the kernel takes a byte as well.
fn number_of(value: &[u8]) -> Option<i32> {
    let byte = value.first().copied().map(i32::from);
    let word = value.first_chunk().map(|word| i32::from_ne_bytes(*word));
    word.or(byte)
}

/// `struct timeval`.
fn timeval(nanos: u64) -> OptionBytes {
    let seconds = (nanos / NANOS_PER_SEC) as i64;
    let micros = (nanos % NANOS_PER_SEC / NANOS_PER_MICRO) as i64;
    [seconds.to_ne_bytes(), micros.to_ne_bytes()].concat()
}

/// A time before now means not to wait.
fn nanos_of(value: &[u8]) -> u64 {
    let (words, _) = value.as_chunks();
    let word = |index: usize| words.get(index).map_or(0, |word| i64::from_ne_bytes(*word));
    match u64::try_from(word(0)) {
        Err(_) => 1,
        Ok(SECONDS_MAX..) => 0,
        Ok(seconds) => seconds * NANOS_PER_SEC + word(1).unsigned_abs() * NANOS_PER_MICRO,
    }
}

fn value_of(options: &Options, level: i32, name: i32) -> Option<OptionBytes> {
    let number: u32 = match (level, name) {
        (libc::SOL_SOCKET, libc::SO_REUSEADDR) => options.reuse_address.into(),
        (libc::SOL_SOCKET, libc::SO_REUSEPORT) => options.reuse_port.into(),
        (libc::SOL_SOCKET, libc::SO_BROADCAST) => options.broadcast.into(),
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => options.keepalive.into(),
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => options.send_buffer,
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => options.recv_buffer,
        (libc::SOL_SOCKET, libc::SO_RCVLOWAT) => options.receive_low_water,
        (libc::SOL_SOCKET, libc::SO_LINGER) => return Some(linger(options)),
        (libc::IPPROTO_IP, libc::IP_TOS) => options.tos.into(),
        (libc::IPPROTO_IP, libc::IP_TTL) => options.ttl.into(),
        (libc::IPPROTO_IP, libc::IP_MINTTL) => options.min_ttl.into(),
        (libc::IPPROTO_IP, libc::IP_RECVERR) => options.queue_failures_v4.into(),
        (libc::IPPROTO_UDP, UDP_SEGMENT) => options.segment_bytes.into(),
        (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP) => options.window_clamp,
        (libc::IPPROTO_TCP, libc::TCP_NODELAY) => options.no_delay.into(),
        (libc::IPPROTO_TCP, libc::TCP_CORK) => options.cork.into(),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => options.keep_idle_secs.into(),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL) => options.keep_interval_secs.into(),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT) => options.keep_count.into(),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => options.user_timeout_ms,
        _ => return None,
    };
    Some(int(i32::try_from(number).unwrap_or(i32::MAX)))
}

/// `struct linger`.
fn linger(options: &Options) -> OptionBytes {
    let on = i32::from(options.linger_secs.is_some());
    let seconds = i32::from(options.linger_secs.unwrap_or(0).cast_signed());
    [on.to_ne_bytes(), seconds.to_ne_bytes()].concat()
}

/// Of the type of service, what is TCP's own.
const ECN_BITS: u8 = 3;

/// By Linux's numbers (IP_PMTUDISC_*).
const PATH_DISCOVERIES: [PathDiscovery; 6] = [
    PathDiscovery::Never,
    PathDiscovery::Want,
    PathDiscovery::Always,
    PathDiscovery::Probe,
    PathDiscovery::Interface,
    PathDiscovery::Omit,
];

/// The timeouts of an answer to a SYN that take so many seconds: 1, 3, 7, 15 ... (TCP_DEFER_ACCEPT).
fn timeouts_within(secs: u32) -> u8 {
    const PAUSE_SECS_MAX: u32 = 120;
    let (mut timeouts, mut sum, mut pause) = (0_u8, 0, 1);
    while sum < secs && timeouts < u8::MAX {
        sum += pause;
        pause = (pause * 2).min(PAUSE_SECS_MAX);
        timeouts += 1;
    }
    timeouts
}

fn change(options: &mut Options, which: (i32, i32), number: i32, second: i32) {
    let (is_on, count) = (number != 0, number.max(0).unsigned_abs());
    let short = |number: i32| u16::try_from(number).unwrap_or(u16::MAX);
    match which {
        (libc::SOL_SOCKET, libc::SO_REUSEADDR) => options.reuse_address = is_on,
        (libc::SOL_SOCKET, libc::SO_REUSEPORT) => options.reuse_port = is_on,
        (libc::SOL_SOCKET, libc::SO_BROADCAST) => options.broadcast = is_on,
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => options.keepalive = is_on,
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => {
            (options.send_buffer, options.is_send_tuned) = (count, false);
        }
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => {
            (options.recv_buffer, options.is_recv_tuned) = (count, false);
        }
        // A negative number is the largest, as in Linux.
        (libc::SOL_SOCKET, libc::SO_RCVLOWAT) => {
            options.receive_low_water = u32::try_from(number).unwrap_or(i32::MAX as u32).max(1);
        }
        (libc::SOL_SOCKET, libc::SO_LINGER) => {
            options.linger_secs = is_on.then(|| short(second.max(0)));
        }
        (libc::IPPROTO_IP, libc::IP_TOS) => options.tos = number as u8,
        (libc::IPPROTO_IP, libc::IP_TTL) => options.ttl = number as u8,
        (libc::IPPROTO_IP, libc::IP_MINTTL) => options.min_ttl = number as u8,
        (libc::IPPROTO_IP, libc::IP_RECVERR) => options.queue_failures_v4 = is_on,
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER) => {
            if let Some(discovery) = PATH_DISCOVERIES.get(count as usize) {
                options.path_discovery = *discovery;
            }
        }
        (libc::IPPROTO_UDP, UDP_SEGMENT) => options.segment_bytes = short(number),
        (libc::IPPROTO_TCP, libc::TCP_SYNCNT) => options.syn_timeouts = number as u8,
        (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT) => {
            options.defer_timeouts = timeouts_within(count);
        }
        (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP) => options.window_clamp = count,
        (libc::IPPROTO_TCP, libc::TCP_NODELAY) => options.no_delay = is_on,
        (libc::IPPROTO_TCP, libc::TCP_CORK) => options.cork = is_on,
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => options.max_segment = short(number),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => options.keep_idle_secs = short(number),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL) => options.keep_interval_secs = short(number),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT) => options.keep_count = number as u8,
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => options.user_timeout_ms = count,
        _ => {}
    }
}
