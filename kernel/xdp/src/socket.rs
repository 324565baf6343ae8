//! The socket as a file and as a socket of the kernel.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use cred::Capability;
use mach::mem::fallible;
use mach::sync::Once;
use mm::MemoryObject;
use mm::io::{Sink, Source};
use net::{Attachment, Ownership, current_stack};
use sockets::{CommonOptions, Held};
use sync::poll::{Events, Pollee};
use sync::{Error, Mutex, Result};
use vfs::Metadata;
use vfs::file::{File, OpenFile};
use vfs::socket::{
    self, BindFlags, Blocking, Family, Message, MessageFlags, OptionName, OptionValue, Received,
    Shutdown, Socket, SocketAddress, SocketType,
};

use crate::endpoint::Endpoint;
use crate::filter::{self, FilterFile};
use crate::flow;
use crate::setup::Setup;

/// An AF_XDP socket; dropping it gives the link's frames back.
pub struct XdpSocket {
    number: u64,
    pollee: Arc<Pollee>,
    common: CommonOptions,
    setup: Mutex<Setup>,
    bound: Once<Bound>,
    /// Flows that no queue has are not to come when it is bound.
    is_no_taker: AtomicBool,
    /// What it may receive and send, if not all. The link goes before it.
    filter: Once<Attachment>,
    _held: Held,
}

/// What a socket has once it is bound. The link goes first.
struct Bound {
    link: Ownership,
    endpoint: Arc<Endpoint>,
}

impl XdpSocket {
    /// A socket without rings.
    pub fn new() -> Self {
        Self {
            number: vfs::file::next_number(),
            pollee: Arc::new(Pollee::new()),
            common: CommonOptions::default(),
            setup: Mutex::new(Setup::default()),
            bound: Once::new(),
            is_no_taker: AtomicBool::new(false),
            filter: Once::new(),
            _held: Held::one(),
        }
    }

    /// One whose program needs no rights.
    pub fn with_filter(attachment: Attachment) -> Self {
        let new = Self::new();
        // Nobody else has it yet.
        let _ = new.filter.set(attachment);
        new
    }

    /// What it has for a call that may not wait: nobody waits in such a socket's calls.
    ///
    /// Errors: `NoSuchDevice` if it is not bound, `Unsupported` if it may wait.
    fn bound(&self, flags: MessageFlags) -> Result<&Bound> {
        let bound = self.bound.get().ok_or(Error::NoSuchDevice)?;
        match flags.blocking() {
            Blocking::MayWait => Err(Error::Unsupported),
            Blocking::Never => Ok(bound),
        }
    }
}

impl XdpSocket {
    /// Attaches a filter: a socket that has a link keeps what the filter admits, another may bind without rights.
    ///
    /// Errors: `Busy` if it has one or the filter has a socket, `BadFile` or `Invalid` for what is no filter,
    /// `NetworkDown` if it was revoked or the link is gone, `WrongDevice` if the socket has another link.
    pub fn attach(&self, descriptor: i32) -> Result<()> {
        let filter = FilterFile::of(descriptor)?;
        let _setup = self.setup.lock();
        if self.filter.get().is_some() {
            return Err(Error::Busy);
        }
        let attachment = filter.attach()?;
        if let Some(bound) = self.bound.get() {
            attachment.narrow(&bound.link)?;
            bound.endpoint.narrow(attachment.filter().outgoing())?;
        }
        self.filter.set(attachment).map_err(|_| Error::Busy)
    }

    /// Takes the link that a filter is over, or with the right to any.
    ///
    /// Errors: `NotPermitted` without either, those of [`net::own`] and [`Attachment::own`].
    fn take(&self, place: (u32, u16), endpoint: Arc<Endpoint>) -> Result<Ownership> {
        let Some(attachment) = self.filter.get() else {
            let is_taker = !self.is_no_taker.load(Relaxed);
            return net::own(&current_stack(), place, endpoint, is_taker);
        };
        endpoint.narrow(attachment.filter().outgoing())?;
        attachment.own(place, endpoint)
    }

    /// Whether the queue gets flows that no queue of the link has, from now on or from when it is bound.
    ///
    /// Errors: `NetworkDown` without the link, `OutOfMemory`.
    fn take_new_flows(&self, is_taker: bool) -> Result<()> {
        let _setup = self.setup.lock();
        match self.bound.get() {
            Some(bound) => bound.link.take_new_flows(is_taker),
            None => {
                self.is_no_taker.store(!is_taker, Relaxed);
                Ok(())
            }
        }
    }
}

impl File for XdpSocket {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        Ok(self.receive(to, MessageFlags::of(open))?.bytes)
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        self.send(Message::plain(from), MessageFlags::of(open))
    }

    fn poll(&self) -> Events {
        let bound = self.bound.get();
        bound.map_or(Events::empty(), |bound| bound.endpoint.ready())
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
    }

    fn map(self: Arc<Self>, range: Range<u64>, is_shared: bool) -> Result<Arc<dyn MemoryObject>> {
        let setup = self.setup.lock();
        if self.bound.get().is_some() {
            return Err(Error::Busy);
        }
        match is_shared {
            true => setup.map(range),
            false => Err(Error::Invalid),
        }
    }

    fn as_socket(&self) -> Option<&dyn Socket> {
        Some(self)
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match request {
            filter::CREATE => filter::create(argument),
            flow::MOVE => {
                let bound = self.bound.get().ok_or(Error::NoSuchDevice)?;
                flow::redirect(&bound.link, argument)
            }
            _ => Err(Error::NotTerminal),
        }
    }

    fn metadata(&self) -> Result<Metadata> {
        Ok(socket::metadata(self.number))
    }

    fn label(&self) -> String {
        socket::label(self.number)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Socket for XdpSocket {
    fn family(&self) -> Family {
        Family::Xdp
    }

    fn socket_type(&self) -> SocketType {
        SocketType::Raw
    }

    /// Errors: `NotPermitted` without CAP_NET_ADMIN or a filter, `Busy` if it or the link is taken,
    /// `WrongDevice`, `Invalid` for what is not set up or a queue that is none, `Unsupported` for
    /// what we do not do.
    fn bind(&self, address: &SocketAddress) -> Result<()> {
        let SocketAddress::Xdp(wanted) = address else {
            return Err(Error::Invalid);
        };
        if wanted.flags.contains(BindFlags::COPY | BindFlags::ZEROCOPY) {
            return Err(Error::Invalid);
        }
        let setup = self.setup.lock();
        if self.filter.get().is_none() {
            // The stack loses the link, as by a program of BPF on Linux.
            cred::credentials().get().require(Capability::NetAdmin)?;
            let stack = current_stack();
            let interface = stack.interface(wanted.interface);
            interface.ok_or(Error::WrongDevice)?;
        }
        if self.bound.get().is_some() {
            return Err(Error::Busy);
        }
        let ours = BindFlags::COPY | BindFlags::USE_NEED_WAKEUP;
        if !ours.contains(wanted.flags) {
            return Err(Error::Unsupported);
        }
        let queue = u16::try_from(wanted.queue).map_err(|_| Error::Invalid)?;
        let endpoint = fallible::arc(Endpoint::new(&setup, self.pollee.clone())?)?;
        let link = self.take((wanted.interface, queue), endpoint.clone())?;
        let bound = self.bound.set(Bound { link, endpoint });
        bound.map_err(|_| Error::Busy)
    }

    fn connect(&self, _address: &SocketAddress, _blocking: Blocking) -> Result<()> {
        Err(Error::Unsupported)
    }

    /// Sends what is in the ring; a message's bytes mean nothing.
    fn send(&self, _message: Message<'_, '_>, flags: MessageFlags) -> Result<usize> {
        let bound = self.bound(flags)?;
        bound.endpoint.kick(bound.link.link()).map(|()| 0)
    }

    /// Has the network looked at; what came is in the ring.
    fn receive(&self, _to: &mut Sink<'_>, flags: MessageFlags) -> Result<Received> {
        self.bound(flags)?.endpoint.wake()?;
        Ok(Received::stream(0))
    }

    fn shutdown(&self, _how: Shutdown) -> Result<()> {
        Err(Error::Unsupported)
    }

    fn local_address(&self) -> Result<SocketAddress> {
        Err(Error::Unsupported)
    }

    fn peer_address(&self) -> Result<SocketAddress> {
        Err(Error::Unsupported)
    }

    fn option(&self, name: OptionName) -> Result<OptionValue> {
        match name {
            OptionName::Error => Ok(OptionValue::PendingError(None)),
            OptionName::Listening => Ok(false.into()),
            OptionName::RingOffsets => Ok(OptionValue::RingOffsets),
            OptionName::XdpOptions => Ok(OptionValue::Number(0)),
            OptionName::XdpStatistics => {
                let told = self.bound.get().map(|bound| bound.endpoint.statistics());
                let told = told.unwrap_or_default();
                Ok(OptionValue::XdpStatistics(told))
            }
            name => self.common.get(name).ok_or(Error::NoSuchOption),
        }
    }

    fn set_option(&self, name: OptionName, value: OptionValue) -> Result<()> {
        if let Some(set) = self.common.set(name, value) {
            return set;
        }
        match name {
            OptionName::XdpNewFlows => return self.take_new_flows(value.number()? != 0),
            OptionName::XdpFilter => return self.attach(value.number()?),
            _ => {}
        }
        let mut setup = self.setup.lock();
        match self.bound.get() {
            Some(_) => Err(Error::Busy),
            None => setup.set(name, value),
        }
    }
}
