//! The TCP socket as a socket of the kernel; as a file it stands in `stream`.

use alloc::sync::Arc;

use inet::{Algorithm, State};
use mm::io::Sink;
use sync::{Error, Result};

use super::stream::Until;
use super::{TcpSocket, repair};
use crate::address::{from_endpoint, to_endpoint, to_name};
use crate::sigpipe;
use crate::{bound_device, options};
use sockets::limits;
use vfs::socket::{
    Blocking, Family, Filter, Message, MessageFlags, OptionName, OptionValue, PageSink, Received,
    Shutdown, Socket, SocketAddress, SocketMemory, SocketType, TcpInfo,
};

/// IANA's number of TCP.
const PROTOCOL_TCP: u8 = 6;

impl Socket for TcpSocket {
    fn page_sink(&self) -> Option<&dyn PageSink> {
        Some(self)
    }

    fn family(&self) -> Family {
        self.handle.family
    }

    fn socket_type(&self) -> SocketType {
        SocketType::Stream
    }

    fn protocol(&self) -> u8 {
        PROTOCOL_TCP
    }

    fn bind(&self, address: &SocketAddress) -> Result<()> {
        let name = to_name(&self.handle, address)?;
        bound_device::follow_scope(&self.handle, address)?;
        self.handle.bind(name)
    }

    fn listen(&self, backlog: u32) -> Result<()> {
        self.start_listening(limits::backlog(backlog))
    }

    fn accept(&self, blocking: Blocking) -> Result<(Arc<dyn Socket>, SocketAddress)> {
        let accepted = self.next_connection(self.handle.receive_wait(blocking))?;
        // The peer may be gone already; the connection is still handed over.
        let peer = accepted.handle.remote().unwrap_or(inet::Endpoint::ANY);
        let name = from_endpoint(&accepted.handle, peer);
        Ok((accepted, name))
    }

    fn connect(&self, address: &SocketAddress, blocking: Blocking) -> Result<()> {
        let peer = to_endpoint(&self.handle, address)?;
        bound_device::follow_scope(&self.handle, address)?;
        if self.is_frozen() {
            return self.start_connecting(peer);
        }
        self.connect_to(peer, self.handle.send_wait(blocking))
    }

    fn send(&self, message: Message<'_, '_>, flags: MessageFlags) -> Result<usize> {
        if flags.contains(MessageFlags::OOB) {
            return Err(Error::Unsupported);
        }
        let how = self.handle.send_wait(flags.blocking());
        let sends = self.completions.get().filter(|sends| sends.is_on());
        let sent = match sends.filter(|_| flags.contains(MessageFlags::ZEROCOPY)) {
            Some(sends) => self.send_in_place(sends, message.from, how),
            None => self.put(message.from, how),
        };
        sigpipe(sent, flags)
    }

    fn receive(&self, to: &mut Sink<'_>, flags: MessageFlags) -> Result<Received> {
        if flags.contains(MessageFlags::ERRQUEUE) {
            return self.next_sends_over();
        }
        if flags.contains(MessageFlags::OOB) {
            return Err(Error::Invalid);
        }
        let how = self.handle.receive_wait(flags.blocking());
        // The program wants them gone, not seen (tcp(7)).
        let mut nowhere = Sink::nowhere(to.remaining());
        let to = match flags.contains(MessageFlags::TRUNC) {
            true => &mut nowhere,
            false => to,
        };
        let until = match flags.contains(MessageFlags::WAITALL) {
            true => Until::Full,
            false => Until::LowWater,
        };
        let bytes = match flags.contains(MessageFlags::PEEK) {
            true => self.peek(to, how, until)?,
            false => self.gather(to, how, until)?,
        };
        Ok(Received::stream(bytes))
    }

    fn shutdown(&self, how: Shutdown) -> Result<()> {
        self.handle.shutdown(how)
    }

    fn local_address(&self) -> Result<SocketAddress> {
        Ok(from_endpoint(&self.handle, self.handle.local()?))
    }

    fn peer_address(&self) -> Result<SocketAddress> {
        Ok(from_endpoint(&self.handle, self.handle.remote()?))
    }

    fn option(&self, name: OptionName) -> Result<OptionValue> {
        match name {
            OptionName::Listening => Ok((self.state()? == State::Listen).into()),
            OptionName::TcpInfo => self.info().map(OptionValue::Tcp),
            OptionName::MaxSegment => Ok(OptionValue::Number(self.info()?.send_mss as i32)),
            OptionName::MemoryInfo => self.memory().map(OptionValue::Memory),
            OptionName::ZeroCopy => Ok(self.lends_pages().into()),
            OptionName::Congestion => Ok(congestion_name(self.handle.options()?.congestion)),
            name if repair::is_option(name) => self.repaired(name),
            name => options::get(&self.handle, name),
        }
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(&self.handle.waiter.filter)
    }

    fn filter_changed(&self) -> Result<()> {
        self.handle.filter_changed()
    }

    fn set_option(&self, name: OptionName, value: OptionValue) -> Result<()> {
        match (name, value) {
            (OptionName::MaxSegment, value) => {
                let bytes = u16::try_from(value.number()?).map_err(|_| Error::Invalid)?;
                self.handle.configure(|options| options.max_segment = bytes)
            }
            // A connection keeps a clamp, larger or smaller.
            (OptionName::WindowClamp, OptionValue::Number(0)) if self.state()? != State::Closed => {
                Err(Error::Invalid)
            }
            (OptionName::ZeroCopy, value) => {
                let is_on = match value.number()? {
                    number @ 0..=1 => number == 1,
                    _ => return Err(Error::Invalid),
                };
                self.lend_pages(is_on);
                Ok(())
            }
            (OptionName::Congestion, OptionValue::Name(name)) => {
                let algorithm = congestion_named(&name).ok_or(Error::NotFound)?;
                self.handle
                    .configure(|options| options.congestion = algorithm)
            }
            (name, value) if repair::is_option(name) => self.repair(name, value),
            (name, value) => options::set(&self.handle, name, value),
        }
    }
}

/// A name of TCP_CONGESTION, filled up with zeros.
fn congestion_name(algorithm: Algorithm) -> OptionValue {
    let mut name = [0; 16];
    for (place, byte) in name.iter_mut().zip(algorithm.name().bytes()) {
        *place = byte;
    }
    OptionValue::Name(name)
}

fn congestion_named(name: &[u8; 16]) -> Option<Algorithm> {
    let end = name.iter().position(|byte| *byte == 0)?;
    let name = core::str::from_utf8(name.get(..end)?).ok()?;
    Algorithm::named(name)
}

impl TcpSocket {
    /// What a connection holds; a listener holds nothing.
    fn memory(&self) -> Result<SocketMemory> {
        let options = self.handle.options()?;
        let count = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let held = self
            .handle
            .with(|id, stack, _| Ok((stack.unread(id)?, stack.unsent(id)?)));
        let (received, sending) = held.unwrap_or_default();
        Ok(SocketMemory {
            received: count(received),
            receive_buffer: options.recv_buffer,
            sending: count(sending),
            send_buffer: options.send_buffer,
            drops: 0,
        })
    }

    fn info(&self) -> Result<TcpInfo> {
        if self.state()? == State::Listen {
            return self.listener_info();
        }
        let info = self.handle.with(|id, stack, _| Ok(stack.info(id)?))?;
        Ok(info_of(&info))
    }

    /// As Linux tells it: connections that wait for an accept, and how many may.
    fn listener_info(&self) -> Result<TcpInfo> {
        let queue = self.handle.with(|id, stack, _| Ok(stack.accept_queue(id)?));
        let (waiting, backlog) = queue?;
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(TcpInfo {
            state: State::Listen as u8,
            unacked: count(waiting),
            selectively_acked: count(backlog),
            ..TcpInfo::default()
        })
    }
}

/// The stack's words for a connection's state, in those of TCP_INFO.
pub(crate) fn info_of(info: &inet::TcpInfo) -> TcpInfo {
    let micros = |span: base::Duration| u32::try_from(span.as_micros()).unwrap_or(u32::MAX);
    let mss = u32::from(info.mss).max(1);
    TcpInfo {
        state: info.state as u8,
        retransmits: info.backoff,
        has_timestamps: info.has_timestamps,
        has_sack: info.has_sack,
        window_scales: info.window_scales,
        rto_us: micros(info.rto),
        send_mss: mss,
        receive_mss: mss,
        unacked: info.in_flight.div_ceil(mss),
        rtt_us: micros(info.srtt),
        rtt_variation_us: micros(info.rttvar),
        congestion_window: info.cwnd / mss,
        slow_start_threshold: info.ssthresh / mss,
        total_retransmits: info.retransmitted,
        bytes_acked: info.delivered,
        not_sent_bytes: u32::try_from(info.unsent).unwrap_or(u32::MAX),
        ..TcpInfo::default()
    }
}
