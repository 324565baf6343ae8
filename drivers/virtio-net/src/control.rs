//! The control half: how many pairs are used, and what leads a frame to one of them.
//!
//! A device with a hash of its own (`VIRTIO_NET_F_RSS`) spreads frames by the rule that
//! it is given. One without steers by itself (section 5.1.6.5.5): it sends a flow to the
//! pair on which a frame of it was last sent.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use base::Duration;
use hal::{
    MulticastFilter, NicControl, NicError, NicShape, PromiscuousScope, RingGroup, SpreadRule,
};
use virtio::Error;

use crate::card::Card;
use crate::commands::{Command, CommandError, Commands};
use crate::table::{GROUPS_MAX, STATIONS_MAX, Table};

/// Commands (section 5.1.6.5).
const PROMISCUOUS: Command = Command {
    class: 0,
    number: 0,
};
const ALL_MULTICAST: Command = Command {
    class: 0,
    number: 1,
};
const SET_TABLE: Command = Command {
    class: 1,
    number: 0,
};
const USE_PAIRS: Command = Command {
    class: 4,
    number: 0,
};
const USE_HASH: Command = Command {
    class: 4,
    number: 1,
};

/// Hash types (section 5.1.6.4.3).
const HASH_IP4: u32 = 1 << 0;
const HASH_TCP4: u32 = 1 << 1;
const HASH_UDP4: u32 = 1 << 2;
const HASH_IP6: u32 = 1 << 3;
const HASH_TCP6: u32 = 1 << 4;
const HASH_UDP6: u32 = 1 << 5;

/// All pairs are one group, the default one.
const GROUP: u16 = 0;
/// What a paravirtual card is taken for where nothing says how fast it is.
const SPEED_MBPS: u64 = 10_000;

/// What the device's hash can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spread {
    key_bytes_max: u8,
    table_entries_max: u16,
    types: u32,
}

impl Spread {
    /// From the configuration's bytes (section 5.1.4); `None` for a device without a hash.
    pub(crate) fn read(config: Option<[u8; 7]>) -> Option<Self> {
        let [key_bytes_max, entries @ .., a, b, c, d] = config?;
        Some(Self {
            key_bytes_max,
            table_entries_max: u16::from_le_bytes(entries),
            types: u32::from_le_bytes([a, b, c, d]),
        })
    }

    fn takes(&self, rule: &SpreadRule<'_>) -> bool {
        usize::from(self.key_bytes_max) >= rule.key.len()
            && usize::from(self.table_entries_max) >= rule.table.len()
            && self.types & types_of(rule) == types_of(rule)
    }
}

fn types_of(rule: &SpreadRule<'_>) -> u32 {
    let part = |is_wanted: bool, v4: u32, v6: u32| match (is_wanted, rule.ipv6) {
        (false, _) => 0,
        (true, false) => v4,
        (true, true) => v4 | v6,
    };
    part(true, HASH_IP4, HASH_IP6)
        | part(rule.tcp_ports, HASH_TCP4, HASH_TCP6)
        | part(rule.udp_ports, HASH_UDP4, HASH_UDP6)
}

/// `struct virtio_net_rss_config` (section 5.1.6.5.7). Frames without a hash go to the
/// first ring.
pub(crate) fn hash_config(rule: &SpreadRule<'_>, pairs: u16) -> Vec<u8> {
    const UNCLASSIFIED: u16 = 0;
    let mut bytes = Vec::new();
    bytes.extend(types_of(rule).to_le_bytes());
    bytes.extend((rule.table.len() as u16 - 1).to_le_bytes());
    bytes.extend(UNCLASSIFIED.to_le_bytes());
    bytes.extend(rule.table.iter().flat_map(|ring| ring.to_le_bytes()));
    bytes.extend(pairs.to_le_bytes());
    bytes.push(rule.key.len() as u8);
    bytes.extend(rule.key);
    bytes
}

/// What the pairs share. Owned by the control plane.
pub struct Control {
    card: Arc<Card>,
    pairs: u16,
    commands: Option<Commands>,
    has_filters: bool,
    /// Whether the device takes all groups; none while it was never told anything, and takes
    /// everything.
    takes_groups: Option<bool>,
    table: Table,
    spread: Option<Spread>,
}

impl Control {
    pub(crate) fn new(
        card: &Arc<Card>,
        pairs: u16,
        commands: Option<Commands>,
        has_filters: bool,
        spread: Option<Spread>,
    ) -> Self {
        Self {
            card: card.join(),
            pairs,
            commands,
            has_filters,
            takes_groups: None,
            table: Table::default(),
            spread,
        }
    }

    /// Has the device use this many pairs.
    pub(crate) fn use_pairs(&mut self, pairs: u16) -> Result<(), Error> {
        self.command(USE_PAIRS, &[&pairs.to_le_bytes()])
            .map_err(|_| Error::CommandRefused)
    }

    fn command(&mut self, command: Command, data: &[&[u8]]) -> Result<(), NicError> {
        let commands = self.commands.as_mut().ok_or(NicError::Unsupported)?;
        let outcome = commands.run(&self.card.transport, command, data);
        outcome.map_err(|error| match error {
            CommandError::Refused => NicError::Unsupported,
            CommandError::NoMemory | CommandError::NoAnswer => NicError::Failed,
        })
    }

    /// A device without `VIRTIO_NET_F_CTRL_RX` lets everything in.
    fn filter(&mut self, command: Command, on: bool) -> Result<(), NicError> {
        match self.has_filters {
            true => self.command(command, &[&[u8::from(on)]]),
            false => Ok(()),
        }
    }

    /// The device hears of changes only: each command waits for its answer. One that was never told
    /// anything takes all frames.
    fn take_groups(&mut self, all: bool) -> Result<(), NicError> {
        if self.takes_groups.is_none() {
            self.filter(PROMISCUOUS, false)?;
        }
        if self.takes_groups != Some(all) {
            self.filter(ALL_MULTICAST, all)?;
            self.takes_groups = Some(all);
        }
        Ok(())
    }

    /// Has the device let in these addresses.
    fn tell(&mut self, table: Table) -> Result<(), NicError> {
        if table != self.table {
            self.command(SET_TABLE, &[&table.to_bytes()])?;
            self.table = table;
        }
        Ok(())
    }

    /// Has the device let these groups in, by name if it can.
    fn take_only(&mut self, groups: &[[u8; 6]]) -> Result<(), NicError> {
        let table = Table {
            groups: groups.to_vec(),
            ..self.table.clone()
        };
        let is_named = self.has_filters && groups.len() <= GROUPS_MAX && self.tell(table).is_ok();
        self.take_groups(!is_named && !groups.is_empty())
    }
}

impl NicControl for Control {
    fn shape(&self) -> NicShape {
        NicShape {
            mac: self.card.mac,
            mtu: self.card.mtu,
            speed_mbps: SPEED_MBPS,
            groups: vec![RingGroup {
                rings: 0..self.pairs,
                filters: STATIONS_MAX as u16,
            }],
            can_poll: true,
        }
    }

    /// Beside the device's own, if it has a table.
    fn add_address(&mut self, group: u16, mac: [u8; 6]) -> Result<(), NicError> {
        if group != GROUP {
            return Err(NicError::Unsupported);
        }
        let table = self.table.with(mac).filter(|_| self.has_filters);
        let told = self.tell(table.ok_or(NicError::FiltersFull)?);
        told.map_err(|_| NicError::FiltersFull)
    }

    /// A device that does not answer lets more in.
    fn remove_address(&mut self, group: u16, mac: [u8; 6]) {
        if group == GROUP {
            let _ = self.tell(self.table.without(mac));
        }
    }

    /// A device that was never told anything takes everything, and from then on no group that
    /// was not asked for.
    fn set_promiscuous(&mut self, scope: PromiscuousScope, on: bool) -> Result<(), NicError> {
        if !matches!(
            scope,
            PromiscuousScope::Group(GROUP) | PromiscuousScope::Card
        ) {
            return Err(NicError::Unsupported);
        }
        if self.takes_groups.is_none() {
            self.take_groups(true)?;
        }
        self.filter(PROMISCUOUS, on)
    }

    fn set_multicast(&mut self, filter: MulticastFilter<'_>) -> Result<(), NicError> {
        match filter {
            MulticastFilter::All => self.take_groups(true),
            MulticastFilter::Only(groups) => self.take_only(groups),
        }
    }

    /// Frames on their way may still go by the old rule.
    fn spread(&mut self, group: u16, rule: &SpreadRule<'_>) -> Result<(), NicError> {
        let takes = self.spread.is_some_and(|spread| spread.takes(rule));
        let is_ring = |ring: &u16| *ring < self.pairs;
        if !takes || group != GROUP || !rule.table.iter().all(is_ring) {
            return Err(NicError::Unsupported);
        }
        self.command(USE_HASH, &[&hash_config(rule, self.pairs)])
    }

    fn set_moderation(&mut self, _ring: u16, _spacing: Duration) -> Result<(), NicError> {
        Err(NicError::Unsupported)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let is_stopped = self.card.leave();
        let Some(commands) = &mut self.commands else {
            return;
        };
        match is_stopped {
            true => commands.retire(),
            false => commands.abandon(),
        }
    }
}
