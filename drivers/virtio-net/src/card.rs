//! Bringing the device up: features, addresses, queues, and how many of them it uses.
//!
//! Queues stand in the order of section 5.1.2: receive and transmit of pair 0, of pair 1
//! and so on, and the control queue behind the last pair that the *device* has, or behind
//! pair 0 where no more than that was agreed on. The device uses pair 0 alone until it is
//! told of more (section 5.1.6.5.5).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use hal::{Capabilities, DmaSource};
use mbuf::Pool;
use virtio::{Error, Features, Transport};

use crate::commands::Commands;
use crate::control::{Control, Spread};
use crate::pair::Pair;

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
const CTRL_VQ: u64 = 1 << 17;
const CTRL_RX: u64 = 1 << 18;
const MQ: u64 = 1 << 22;
const RSS: u64 = 1 << 60;

/// Offsets in the device's configuration (section 5.1.4).
const CONFIG_MAC: usize = 0;
const CONFIG_PAIRS: usize = 8;
const CONFIG_MTU: usize = 10;
const CONFIG_RSS: usize = 17;
const CONFIG_RSS_BYTES: usize = 7;
/// Ethernet's own.
const MTU_DEFAULT: u16 = 1500;
/// A device has so many pairs at most (section 5.1.4.1).
const DEVICE_PAIRS_MAX: u16 = 0x8000;

/// A device that runs, in parts: each is owned by one CPU and needs no lock.
pub struct Parts {
    /// Pair `n` is ring `n` of the device and raises interrupt `n`.
    pub pairs: Vec<Pair>,
    /// What the pairs share.
    pub control: Control,
}

/// The device, as long as anybody has a part of it.
pub(crate) struct Card {
    pub(crate) transport: Transport,
    pub(crate) mac: [u8; 6],
    pub(crate) mtu: u16,
    pub(crate) capabilities: Capabilities,
    /// Parts that can still move frames or commands.
    parts: AtomicUsize,
}

impl Card {
    /// For one more part.
    pub(crate) fn join(self: &Arc<Self>) -> Arc<Self> {
        self.parts.fetch_add(1, Ordering::Relaxed);
        self.clone()
    }

    /// One part goes. Stops the device if it is the last one; says whether.
    pub(crate) fn leave(&self) -> bool {
        let is_last = self.parts.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last {
            self.transport.stop();
        }
        is_last
    }
}

/// Brings the device up with at most `pairs_max` pairs of queues, fewer if it has fewer.
/// Received frames of pair `n` raise interrupt `n`; sent ones and commands none.
///
/// `pool` supplies the buffers of received frames. The device spreads frames over the
/// pairs as it likes until [`Control`] tells it how.
pub fn open(
    transport: Transport,
    memory: &impl DmaSource,
    pool: &'static (dyn Pool + Sync),
    pairs_max: u16,
) -> Result<Parts, Error> {
    let agreed = transport.negotiate(MAC, |offered| wanted(offered, pairs_max))?;
    let device_pairs = read_pairs(&transport, agreed)?;
    let pairs = pairs_max.clamp(1, device_pairs);
    let spread = Spread::read(rss_config(&transport, agreed));
    let card = Arc::new(Card {
        mac: read_mac(&transport)?,
        mtu: read_mtu(&transport, agreed)?,
        capabilities: capabilities_of(agreed),
        transport,
        parts: AtomicUsize::new(0),
    });
    let has_events = agreed & Features::EVENT_IDX.bits() != 0;
    let mut all: Vec<_> = (0..pairs)
        .map(|number| Pair::new(&card, number, memory, pool, has_events))
        .collect::<Result<_, _>>()?;
    let commands = match agreed & CTRL_VQ {
        0 => None,
        _ => Some(Commands::new(
            &card.transport,
            2 * device_pairs,
            memory,
            pool,
        )?),
    };
    card.transport.start();
    let has_filters = agreed & CTRL_RX != 0;
    let mut control = Control::new(&card, pairs, commands, has_filters, spread);
    for pair in &mut all {
        pair.supply()?;
    }
    if pairs > 1 {
        control.use_pairs(pairs)?;
    }
    Ok(Parts {
        pairs: all,
        control,
    })
}

/// What we want of what is offered. Joined segments are larger than one buffer and come
/// without a checksum.
fn wanted(offered: u64, pairs_max: u16) -> u64 {
    let always = MTU | MRG_RXBUF | CSUM | GUEST_CSUM | Features::EVENT_IDX.bits();
    let mut wanted = always;
    if offered & CSUM != 0 {
        wanted |= HOST_TSO4 | HOST_TSO6;
    }
    if offered & GUEST_CSUM != 0 && offered & MRG_RXBUF != 0 {
        wanted |= GUEST_TSO4 | GUEST_TSO6;
    }
    // The control queue is of use for filters and for more pairs.
    if offered & CTRL_VQ != 0 && offered & CTRL_RX != 0 {
        wanted |= CTRL_VQ | CTRL_RX;
    }
    if offered & CTRL_VQ != 0 && offered & MQ != 0 && pairs_max > 1 {
        wanted |= CTRL_VQ | MQ | RSS;
    }
    wanted
}

fn capabilities_of(agreed: u64) -> Capabilities {
    Capabilities {
        checksum: agreed & CSUM != 0,
        tso4: agreed & HOST_TSO4 != 0,
        tso6: agreed & HOST_TSO6 != 0,
        guest_checksum: agreed & GUEST_CSUM != 0,
        guest_coalesce: agreed & GUEST_TSO4 != 0,
        tags: false,
    }
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

/// How many pairs the device has: the control queue stands behind them.
fn read_pairs(transport: &Transport, agreed: u64) -> Result<u16, Error> {
    if agreed & MQ == 0 {
        return Ok(1);
    }
    let field = transport.config().window(CONFIG_PAIRS, 2);
    let field = field.ok_or(Error::RegistersOutside)?;
    Ok(field.read16(0).clamp(1, DEVICE_PAIRS_MAX - 1))
}

/// What the device says of its hash; `None` if it has none.
fn rss_config(transport: &Transport, agreed: u64) -> Option<[u8; CONFIG_RSS_BYTES]> {
    if agreed & RSS == 0 {
        return None;
    }
    let field = transport.config().window(CONFIG_RSS, CONFIG_RSS_BYTES)?;
    Some(core::array::from_fn(|index| field.read8(index)))
}
