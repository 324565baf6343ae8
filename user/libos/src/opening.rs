//! Takes what a configuration names: a VNIC by its name, a card by its place on the bus.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use hal::FramePort;
use hal::pci::PciFunction;
use inet::Config;
use mbuf::FreeList;
use rt::vfio::{DeviceMemory, Function};
use rt::{AnyIo, Card, Edges, Interface, PortMirror, XdpSocket};

use crate::config::{QUEUES, QueueConfig};
use crate::doorbell::{Doorbell, OwnCard};

/// A link that the program has.
pub struct Link {
    /// Its frames.
    pub io: AnyIo,
    /// The address of its station.
    pub mac: [u8; 6],
    /// The largest payload of a frame.
    pub mtu: u16,
    /// Of its stack.
    pub stack: Config,
}

/// A card's driver, ready.
type Port = Box<dyn FramePort + Send>;

/// Takes it.
pub fn open(config: &QueueConfig) -> io::Result<(Doorbell, Link)> {
    match config.is_card() {
        true => open_card(config),
        false => open_rings(config),
    }
}

fn open_rings(config: &QueueConfig) -> io::Result<(Doorbell, Link)> {
    let link = Interface::find(&config.link)?;
    let mtu = u16::try_from(link.mtu).map_err(|_| io::ErrorKind::InvalidInput)?;
    let setup = config.setup();
    let (socket, exchange) = match &config.filter {
        Some(filter) => XdpSocket::open_filtered(filter, link.index, QUEUES, setup)?,
        None if config.takes_new_flows => {
            XdpSocket::open(link.index, config.queues.clone(), setup)?
        }
        None => XdpSocket::open_quietly(link.index, config.queues.clone(), setup)?,
    };
    let link = Link {
        io: AnyIo::Rings(exchange),
        mac: link.mac,
        mtu,
        stack: config.stack_of(socket.queue()),
    };
    Ok((Doorbell::Socket(socket), link))
}

fn open_card(config: &QueueConfig) -> io::Result<(Doorbell, Link)> {
    let function = Function::open(&config.link)?;
    let setup = config.setup();
    let (memory, buffers) = function.memory(setup.chunks, setup.reserve)?;
    let (interrupt, revocation) = (function.interrupt()?, function.revocation()?);
    let port = start(&function, &memory, buffers)?;
    let mut card = Card::new(port, buffers);
    let (mac, mtu) = (card.mac(), card.mtu());
    let mirror = PortMirror::open(&config.link, mac, mtu).ok().map(Arc::new);
    if let Some(mirror) = &mirror {
        card.show_by(mirror.clone());
    }
    let link = Link {
        io: AnyIo::Card(card),
        mac,
        mtu,
        stack: config.stack(),
    };
    let card = OwnCard {
        edges: Edges::of(interrupt.as_fd(), &[revocation.as_fd()])?,
        interrupt,
        revocation,
        function,
        mirror,
    };
    Ok((Doorbell::Card(card), link))
}

/// Brings the card up with its driver.
///
/// Errors: `Unsupported` if there is none for it.
fn start(
    function: &Function,
    memory: &DeviceMemory,
    buffers: &'static FreeList,
) -> io::Result<Port> {
    if hal::pci::id(function) == igb::vf::ID {
        return start_virtual(function, memory, buffers);
    }
    if igb::is_for(function) {
        let parts = igb::open(function, memory, buffers, 1).map_err(refused)?;
        return first(parts.pairs);
    }
    if let Ok(transport) = virtio::PciTransport::new(function) {
        let transport = virtio::Transport::Pci(transport);
        let parts = virtio_net::open(transport, memory, buffers, 1).map_err(refused)?;
        return first(parts.pairs);
    }
    let (vendor, device) = hal::pci::id(function);
    let message = format!("no driver for the device {vendor:04x}:{device:04x}");
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

/// A virtual function: a queue of a card that others use, too.
fn start_virtual(
    function: &Function,
    memory: &DeviceMemory,
    buffers: &'static FreeList,
) -> io::Result<Port> {
    hal::pci::enable(function);
    let registers = function.bar(0).ok_or(io::ErrorKind::Unsupported)?;
    let parts = igb::vf::open(registers, memory, buffers).map_err(refused)?;
    first(parts.pairs)
}

/// The card's control half is let go: its filters stay as they are, with the card's own address.
fn first<P: FramePort + Send + 'static>(pairs: Vec<P>) -> io::Result<Port> {
    let pair = pairs.into_iter().next();
    pair.map(|pair| Box::new(pair) as Port)
        .ok_or_else(|| io::ErrorKind::Unsupported.into())
}

fn refused(error: impl std::fmt::Debug) -> io::Error {
    io::Error::other(format!("the card cannot be used: {error:?}"))
}
