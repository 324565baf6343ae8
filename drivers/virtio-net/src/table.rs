//! The device's table of addresses (section 5.1.6.5.2): stations and groups whose frames it lets in.
//!
//! It is told as a whole each time. The standard does not say how many it holds, and a device that
//! is told of too many may let everything in; so we ask for few ([`STATIONS_MAX`], [`GROUPS_MAX`]),
//! and for everything by the commands that say so where these do not suffice.

use alloc::vec::Vec;

/// Stations beside the device's own. QEMU holds 64 addresses in all.
pub(crate) const STATIONS_MAX: usize = 32;
/// Groups by name; more are taken as all.
pub(crate) const GROUPS_MAX: usize = 32;

/// What the device is told.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Table {
    pub(crate) stations: Vec<[u8; 6]>,
    pub(crate) groups: Vec<[u8; 6]>,
}

impl Table {
    /// `struct virtio_net_ctrl_mac`, for stations and then for groups.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for addresses in [&self.stations, &self.groups] {
            bytes.extend((addresses.len() as u32).to_le_bytes());
            bytes.extend(addresses.iter().flatten());
        }
        bytes
    }

    /// The same with one station more; `None` if there is no room.
    pub(crate) fn with(&self, mac: [u8; 6]) -> Option<Self> {
        let mut table = self.clone();
        if self.stations.len() == STATIONS_MAX {
            return None;
        }
        table.stations.push(mac);
        Some(table)
    }

    /// The same with one station less.
    pub(crate) fn without(&self, mac: [u8; 6]) -> Self {
        let mut table = self.clone();
        if let Some(at) = table.stations.iter().position(|known| *known == mac) {
            table.stations.remove(at);
        }
        table
    }
}
