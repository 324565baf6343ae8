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
    /// Dropped: the device wrote less than a header.
    pub rx_no_header: u64,
    /// Dropped: the device announced more buffers than it filled.
    pub rx_incomplete: u64,
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
    /// Keeps the registers mapped as long as the queues are in use.
    _transport: Transport,
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
        let offloads = CSUM | GUEST_CSUM | GUEST_TSO4 | GUEST_TSO6 | HOST_TSO4 | HOST_TSO6;
        let wanted = offloads | MTU | MRG_RXBUF | Features::EVENT_IDX.bits();
        let agreed = transport.negotiate(MAC, wanted)?;
        let event_index = agreed & Features::EVENT_IDX.bits() != 0;
        let mut rx = Receiver::new(&transport, memory, pool, event_index, rx_vector)?;
        let tx = Transmitter::new(&transport, memory, pool, event_index, NO_VECTOR)?;
        transport.start();
        rx.refill();
        Ok(Self {
            mac: read_mac(&transport),
            mtu: read_mtu(&transport, agreed),
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
            _transport: transport,
        })
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

fn read_mac(transport: &Transport) -> [u8; 6] {
    core::array::from_fn(|index| transport.config().read8(CONFIG_MAC + index))
}

fn read_mtu(transport: &Transport, agreed: u64) -> u16 {
    if agreed & MTU == 0 {
        return MTU_DEFAULT;
    }
    transport.config().read16(CONFIG_MTU).clamp(576, 9000)
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
