//! The device: features, addresses, and its two queues as one port.

use hal::{Capabilities, DmaSource, FramePort};
use mbuf::{Pool, RxFrame, TxFrame};
use virtio::{Error, Features, NO_VECTOR, Transport};

use crate::rx::Receiver;
use crate::tx::Transmitter;

/// Feature bits of the network device (section 5.1.3).
const CSUM: u64 = 1 << 0;
const GUEST_CSUM: u64 = 1 << 1;
const MTU: u64 = 1 << 3;
const MAC: u64 = 1 << 5;
const GUEST_TSO4: u64 = 1 << 7;
const GUEST_TSO6: u64 = 1 << 8;
const HOST_TSO4: u64 = 1 << 11;
const HOST_TSO6: u64 = 1 << 12;
const MRG_RXBUF: u64 = 1 << 15;

/// Offsets in the device's configuration (section 5.1.4).
const CONFIG_MAC: usize = 0;
const CONFIG_MTU: usize = 10;
/// Ethernet's own.
const MTU_DEFAULT: u16 = 1500;

/// What happened, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Frames received.
    pub rx_frames: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Dropped: the device wrote less than its header and an Ethernet header.
    pub rx_no_header: u64,
    /// Dropped: the device announced more buffers than it filled.
    pub rx_incomplete: u64,
    /// Dropped: the device's header points outside of the frame.
    pub rx_bad_header: u64,
    /// Dropped: no buffer to replace the filled one.
    pub rx_no_memory: u64,
    /// Refused: no descriptors were free.
    pub tx_queue_full: u64,
    /// Refused: no buffer for a header.
    pub tx_no_memory: u64,
    /// 1 if the device broke a queue; nothing moves any more.
    pub queue_broken: u64,
}

/// A running virtio network device.
pub struct VirtioNet {
    mac: [u8; 6],
    mtu: u16,
    capabilities: Capabilities,
    rx: Receiver,
    tx: Transmitter,
    counters: Counters,
    transport: Transport,
}

impl VirtioNet {
    /// Brings the device up. Received frames raise interrupt `rx_vector`; sent ones none.
    ///
    /// `pool` supplies the buffers of received frames.
    pub fn new(
        transport: Transport,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
        rx_vector: u16,
    ) -> Result<Self, Error> {
        let agreed = transport.negotiate(MAC, wanted)?;
        let event_index = agreed & Features::EVENT_IDX.bits() != 0;
        let mut rx = Receiver::new(&transport, memory, pool, event_index, rx_vector)?;
        let tx = Transmitter::new(&transport, memory, pool, event_index, NO_VECTOR)?;
        transport.start();
        if rx.refill() == 0 {
            transport.stop();
            return Err(Error::OutOfMemory);
        }
        Ok(Self {
            mac: read_mac(&transport)?,
            mtu: read_mtu(&transport, agreed)?,
            capabilities: Capabilities {
                checksum: agreed & CSUM != 0,
                tso4: agreed & HOST_TSO4 != 0,
                tso6: agreed & HOST_TSO6 != 0,
                guest_checksum: agreed & GUEST_CSUM != 0,
                guest_coalesce: agreed & GUEST_TSO4 != 0,
            },
            rx,
            tx,
            counters: Counters::default(),
            transport,
        })
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

/// What we want of what is offered. Joined segments are larger than one buffer and come
/// without a checksum.
fn wanted(offered: u64) -> u64 {
    let always = MTU | MRG_RXBUF | CSUM | GUEST_CSUM | Features::EVENT_IDX.bits();
    let mut wanted = always;
    if offered & CSUM != 0 {
        wanted |= HOST_TSO4 | HOST_TSO6;
    }
    if offered & GUEST_CSUM != 0 && offered & MRG_RXBUF != 0 {
        wanted |= GUEST_TSO4 | GUEST_TSO6;
    }
    wanted
}

/// The size of queue `index`: a power of two that suits both sides.
pub(crate) fn queue_size(transport: &Transport, index: u16, wanted: u16) -> Result<u16, Error> {
    let size = transport.queue_size_max(index).min(wanted);
    size.checked_ilog2()
        .map(|log2| 1 << log2)
        .ok_or(Error::NoQueue(index))
}

fn read_mac(transport: &Transport) -> Result<[u8; 6], Error> {
    let field = transport.config().window(CONFIG_MAC, 6);
    let field = field.ok_or(Error::RegistersOutside)?;
    Ok(core::array::from_fn(|index| field.read8(index)))
}

fn read_mtu(transport: &Transport, agreed: u64) -> Result<u16, Error> {
    if agreed & MTU == 0 {
        return Ok(MTU_DEFAULT);
    }
    let field = transport.config().window(CONFIG_MTU, 2);
    let field = field.ok_or(Error::RegistersOutside)?;
    Ok(field.read16(0).clamp(576, 9000))
}

impl FramePort for VirtioNet {
    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn transmit(&mut self, frame: TxFrame) -> Result<(), TxFrame> {
        self.tx.transmit(frame, &mut self.counters)
    }

    fn kick(&mut self) {
        self.tx.kick();
    }

    fn receive(&mut self, budget: usize, take: &mut dyn FnMut(RxFrame)) -> usize {
        self.tx.reclaim(&mut self.counters);
        self.rx.receive(budget, &mut self.counters, take)
    }

    fn unsent(&mut self) -> usize {
        self.tx.unsent(&mut self.counters)
    }

    fn reclaim(&mut self) {
        self.tx.reclaim(&mut self.counters);
    }

    fn arm(&mut self) -> bool {
        self.rx.arm()
    }

    fn disarm(&mut self) {
        self.rx.disarm();
    }
}

impl Drop for VirtioNet {
    /// The device must not touch buffers that are about to be freed.
    fn drop(&mut self) {
        self.transport.stop();
        self.rx.retire();
        self.tx.retire();
    }
}
