//! The network at boot: its shards, and addresses from the command line's `ip=` or DHCP.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use hal::NicControl;
use inet::Cidr;
use mach::sync::{Once, Spin};

use super::runners::{self, LeadInterrupt};
use super::{attend, inbox, reception, ring, steer};
use crate::stack;
use crate::stack::env::Port;
use crate::stack::routes;

/// How the machine gets its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Config {
    /// Asks a server (RFC 2131); programs start meanwhile.
    Dhcp,
    /// A fixed address, and the router to the rest of the world.
    Static {
        /// Ours, with our network.
        address: Cidr,
        /// The default router.
        gateway: Option<Ipv4Addr>,
    },
    /// Loopback only.
    None,
}

impl Config {
    /// Reads the value of `ip=`: `dhcp`, `none` or `ADDRESS/BITS[,GATEWAY]`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "dhcp" => Some(Self::Dhcp),
            "none" => Some(Self::None),
            _ => parse_static(text),
        }
    }
}

fn parse_static(text: &str) -> Option<Config> {
    let (cidr, gateway) = match text.split_once(',') {
        Some((cidr, gateway)) => (cidr, Some(gateway.parse().ok()?)),
        None => (text, None),
    };
    let (address, bits) = cidr.split_once('/')?;
    let address = Cidr::new(address.parse().ok()?, bits.parse().ok()?)?;
    Some(Config::Static { address, gateway })
}

/// The buffers of connections grow by at most this share of all packet buffers.
const GROWTH_SHARE: usize = 4;

/// What becomes of finished connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeWait {
    /// What `docs/time-wait.md` says.
    Careful,
    /// The bug of the clumsy kernel, to learn from (`docs/clumsy-kernel.md`).
    Clumsy,
}

/// So many finished connections the clumsy kernel remembers: all that ports allow.
const CLUMSY_TIME_WAITS: usize = 1 << 16;

/// Creates the stack with its loopback; once at boot, before devices are attached.
pub fn init(time_wait: TimeWait) {
    super::memory::init();
    let [tcp_memory, udp_memory] = super::memory::limits();
    let mut limits = inet::Config {
        tcp_memory,
        udp_memory,
        buffer_growth_max: super::memory::bytes_max() / GROWTH_SHARE,
        ..inet::Config::default()
    };
    let mut shards = mach::cpu::count() as u16;
    if time_wait == TimeWait::Clumsy {
        limits.time_wait = inet::TimeWaitRules::clumsy();
        limits.time_waits_max = CLUMSY_TIME_WAITS;
        // Its bug shows once all ports were used, which each shard has a part of.
        shards = 1;
    }
    let first = stack::first();
    first.change_settings(|settings| *settings = limits);
    first.add_first_shards(shards);
    super::poll::init();
}

/// Gives the attached device its address. Where there are several shards, the others
/// follow the first.
pub fn configure(config: Config) {
    let first = stack::first();
    first.with_shard(0, |stack, link| {
        match config {
            Config::Dhcp => stack.start_dhcp(link),
            Config::Static { address, gateway } => {
                stack.set_address(Some(address));
                stack.set_gateway(gateway);
            }
            Config::None => {}
        }
        routes::follow(stack, link, first.count());
    });
    super::poll::poll_now();
}

/// Gives the stack a card with several pairs of queues, each of which gets a shard, as far as there
/// are CPUs. The interrupt of pair `n` calls [`crate::interrupted`], on CPU `n` until
/// `lead_interrupt` says otherwise.
///
/// One pair is the only shard's own, which then needs no lock but one. `control` is kept
/// for as long as the machine runs.
pub fn attach_pairs(
    mut ports: Vec<Port>,
    mut control: Box<dyn NicControl + Send>,
    lead_interrupt: LeadInterrupt,
) {
    let shards = ports.len().min(stack::first().loopback_count().into()) as u16;
    match shards {
        0 => return,
        1 => {
            runners::init(1, lead_interrupt);
            ports.into_iter().take(1).for_each(super::poll::attach);
        }
        _ => {
            ports.truncate(shards.into());
            steer::tell(&mut *control, shards);
            attach_shards(ports, shards, lead_interrupt);
        }
    }
    CONTROL.call_once(|| Spin::new(control));
    attend::attached();
    reception::attached();
}

fn attach_shards(ports: Vec<Port>, shards: u16, lead_interrupt: LeadInterrupt) {
    let facts = super::poll::facts_of(&*ports[0]);
    steer::init(shards);
    runners::init(shards, lead_interrupt);
    inbox::init(shards, shards);
    ring::init(ports, shards);
    stack::first().split(shards, facts);
    super::poll::set_attached(&facts);
    // CPUs that halted before do not wait for their rings yet.
    (0..shards).for_each(runners::call);
    runners::watch();
}

/// Calls `work` with the control half of the card; `None` without a card.
pub(crate) fn with_control<R>(work: impl FnOnce(&mut dyn NicControl) -> R) -> Option<R> {
    Some(work(&mut **CONTROL.get()?.lock()))
}

/// The control half of the card, which is the machine's; the card stops when all its parts are gone.
static CONTROL: Once<Spin<Box<dyn NicControl + Send>>> = Once::new();
