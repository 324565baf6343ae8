//! Who answers to what: connections by their four-tuple, other sockets by their port.
//!
//! A connection is found by one hash look-up. Sockets that wait for unknown peers
//! (listeners, datagram sockets) hang off their port and compete by how much of the
//! address they name; equals that share a port split the arrivals by the peer's hash.

use alloc::vec::Vec;
use core::hash::{BuildHasherDefault, Hash, Hasher};
use core::net::IpAddr;

use hashbrown::{Equivalent, HashMap};

use crate::addr::{Endpoint, FourTuple};
use crate::ephemeral::{Ephemeral, PortRange};
use crate::error::Error;
use crate::hash::{Key, Salt};
use crate::options::Device;

/// Passes on a hash that was made with the secret key.
#[derive(Clone, Copy, Default)]
pub(crate) struct Prehashed(u64);

impl Hasher for Prehashed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A four-tuple together with its hash, so that it is hashed once: the tuple itself in the
/// table, a reference to ask for it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Hashed<T> {
    tuple: T,
    hash: u64,
}

impl<'t> Hashed<&'t FourTuple> {
    #[inline]
    fn new(key: &Key, tuple: &'t FourTuple) -> Self {
        Self {
            tuple,
            hash: key.tuple(tuple),
        }
    }

    fn owned(self) -> Hashed<FourTuple> {
        Hashed {
            tuple: *self.tuple,
            hash: self.hash,
        }
    }
}

impl<T> Hash for Hashed<T> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Equivalent<Hashed<FourTuple>> for Hashed<&FourTuple> {
    #[inline]
    fn equivalent(&self, other: &Hashed<FourTuple>) -> bool {
        self.hash == other.hash && *self.tuple == other.tuple
    }
}

/// How a bound socket shares its port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sharing {
    pub reuse_address: bool,
    pub reuse_port: bool,
    pub is_listening: bool,
    /// Bound to `::`, it leaves IPv4 packets to others.
    pub is_v6_only: bool,
    /// Whose it is.
    pub owner: u32,
    pub device: Device,
}

/// A socket on a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub index: u32,
    pub local: IpAddr,
    /// Only packets of this peer, if it is set.
    pub peer: Option<Endpoint>,
    pub sharing: Sharing,
}

/// The sockets of one protocol that are bound to ports.
pub(crate) struct Ports {
    by_port: HashMap<u16, Vec<Bound>>,
    ephemeral: Ephemeral,
    epoch: u32,
}

impl Ports {
    fn new(range: PortRange) -> Self {
        Self {
            by_port: HashMap::new(),
            ephemeral: Ephemeral::new(range),
            epoch: 0,
        }
    }

    /// Changes with all that [`find`](Self::find) depends on.
    #[inline]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    fn change(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    fn conflicts(old: &Bound, local: IpAddr, new: Sharing) -> bool {
        let is_wild = old.local.is_unspecified() || local.is_unspecified();
        let same_family = old.local.is_ipv4() == local.is_ipv4();
        let takes_both = takes_both(old.local, old.sharing) || takes_both(local, new);
        let overlap = old.local == local || (is_wild && same_family) || takes_both;
        let overlap = overlap && old.sharing.device.overlaps(new.device);
        let both_share = old.sharing.reuse_port && new.reuse_port;
        // Nobody takes a share of another user's arrivals.
        let both_share = both_share && old.sharing.owner == new.owner;
        let both_reuse = old.sharing.reuse_address && new.reuse_address;
        overlap && !both_share && (!both_reuse || old.sharing.is_listening)
    }

    /// Whether a socket may bind there.
    pub fn is_free(&self, local: Endpoint, sharing: Sharing) -> bool {
        self.by_port.get(&local.port).is_none_or(|bound| {
            bound
                .iter()
                .all(|old| !Self::conflicts(old, local.addr, sharing))
        })
    }

    pub fn bind(&mut self, port: u16, bound: Bound) -> Result<(), Error> {
        if !self.is_free(Endpoint::new(bound.local, port), bound.sharing) {
            return Err(Error::AddressInUse);
        }
        self.change();
        self.by_port.try_reserve(1).map_err(|_| Error::NoBuffers)?;
        let sharers = self.by_port.entry(port).or_default();
        let room = sharers.try_reserve(1).map_err(|_| Error::NoBuffers);
        if room.is_ok() {
            sharers.push(bound);
        }
        room
    }

    pub fn unbind(&mut self, port: u16, index: u32) {
        self.change();
        if let Some(bound) = self.by_port.get_mut(&port) {
            bound.retain(|entry| entry.index != index);
            if bound.is_empty() {
                self.by_port.remove(&port);
            }
        }
    }

    /// The entry of a socket, to be changed.
    pub fn entry(&mut self, port: u16, index: u32) -> Option<&mut Bound> {
        self.change();
        self.by_port
            .get_mut(&port)?
            .iter_mut()
            .find(|entry| entry.index == index)
    }

    /// Whether another socket listens where this one wants to.
    pub fn has_other_listener(
        &self,
        port: u16,
        index: u32,
        local: IpAddr,
        sharing: Sharing,
    ) -> bool {
        self.by_port.get(&port).is_some_and(|bound| {
            bound.iter().any(|old| {
                old.index != index
                    && old.sharing.is_listening
                    && Self::conflicts(old, local, sharing)
            })
        })
    }

    /// An unused port for a destination with that hash.
    pub fn ephemeral(&mut self, hash: u64, is_usable: impl Fn(u16) -> bool) -> Option<u16> {
        let by_port = &self.by_port;
        let is_unused = |port: &u16| is_usable(*port) && !by_port.contains_key(port);
        self.ephemeral.candidates(hash).find(is_unused)
    }

    /// The socket that a packet from `remote` to `local` goes to.
    pub fn find(
        &self,
        (local, remote): (Endpoint, Endpoint),
        spread: impl Fn() -> u64,
    ) -> Option<u32> {
        let bound = self.by_port.get(&local.port)?;
        let score = |entry: &Bound| Self::score(entry, local, remote);
        if let [only] = bound.as_slice() {
            return score(only).map(|_| only.index);
        }
        let best = bound.iter().filter_map(score).max()?;
        let is_best = |entry: &&Bound| score(entry) == Some(best);
        let equals = bound.iter().filter(is_best).count() as u64;
        let pick = if equals > 1 { spread() % equals } else { 0 };
        bound
            .iter()
            .filter(is_best)
            .nth(pick as usize)
            .map(|entry| entry.index)
    }

    /// All sockets that take a packet from `remote` to the group `local`.
    pub fn find_all(&self, local: Endpoint, remote: Endpoint) -> impl Iterator<Item = u32> + '_ {
        let bound = self.by_port.get(&local.port).into_iter().flatten();
        bound
            .filter(move |entry| Self::score(entry, local, remote).is_some())
            .map(|entry| entry.index)
    }

    /// `None` if the socket does not take the packet; more named means higher.
    fn score(entry: &Bound, local: Endpoint, remote: Endpoint) -> Option<u8> {
        let device = match entry.sharing.device {
            Device::Any => 0,
            device if device.hears(local.addr) => 6,
            _ => return None,
        };
        let peer = match entry.peer {
            None => device,
            Some(peer) if peer == remote => device + 3,
            Some(_) => return None,
        };
        if entry.local == local.addr {
            Some(peer + 2)
        } else if entry.local.is_unspecified() && entry.local.is_ipv4() == local.addr.is_ipv4() {
            Some(peer + 1)
        } else if takes_both(entry.local, entry.sharing) {
            Some(peer)
        } else {
            None
        }
    }
}

/// Whether a socket bound so takes packets of both families.
fn takes_both(local: IpAddr, sharing: Sharing) -> bool {
    local.is_ipv6() && local.is_unspecified() && !sharing.is_v6_only
}

/// All connections, and the ports of both protocols.
pub(crate) struct Demux {
    connections: HashMap<Hashed<FourTuple>, u32, BuildHasherDefault<Prehashed>>,
    pub tcp: Ports,
    pub udp: Ports,
    key: Key,
}

impl Demux {
    pub fn new(key: Key, range: PortRange) -> Self {
        Self {
            connections: HashMap::default(),
            tcp: Ports::new(range),
            udp: Ports::new(range),
            key,
        }
    }

    /// A port of ours for a connection from `local`, whose port does not matter, to
    /// `remote`: one whose four-tuple names no connection, and that `is_usable`.
    pub fn port_for(
        &mut self,
        local: Endpoint,
        remote: Endpoint,
        is_usable: impl Fn(&FourTuple) -> bool,
    ) -> Option<u16> {
        let named = |port| FourTuple {
            local: Endpoint { port, ..local },
            remote,
        };
        let (key, connections) = (self.key, &self.connections);
        let hash = key.secret(Salt::Port, &named(0), [0, 0]);
        self.tcp.ephemeral(hash, |port| {
            let tuple = named(port);
            is_usable(&tuple) && !connections.contains_key(&Hashed::new(&key, &tuple))
        })
    }

    /// Where ephemeral ports come from, from now on.
    pub fn set_range(&mut self, range: PortRange) {
        (self.tcp.ephemeral.range, self.udp.ephemeral.range) = (range, range);
    }

    /// Ports of the range that are left out: rising, and apart.
    pub fn reserve(&mut self, ranges: &[PortRange]) {
        self.tcp.ephemeral.reserved = ranges.to_vec();
        self.udp.ephemeral.reserved = ranges.to_vec();
    }

    pub fn reserved(&self) -> &[PortRange] {
        &self.tcp.ephemeral.reserved
    }

    #[inline]
    fn hashed<'t>(&self, tuple: &'t FourTuple) -> Hashed<&'t FourTuple> {
        Hashed::new(&self.key, tuple)
    }

    #[inline]
    pub fn connection(&self, tuple: &FourTuple) -> Option<u32> {
        self.connections.get(&self.hashed(tuple)).copied()
    }

    /// Errors: `NoBuffers` if there is no memory for a larger table.
    pub fn connect(&mut self, tuple: &FourTuple, index: u32) -> Result<(), Error> {
        self.connections
            .try_reserve(1)
            .map_err(|_| Error::NoBuffers)?;
        self.connections.insert(self.hashed(tuple).owned(), index);
        Ok(())
    }

    pub fn disconnect(&mut self, tuple: &FourTuple) {
        self.connections.remove(&self.hashed(tuple));
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;

    const RANGE: PortRange = PortRange::new(5000, 5009).expect("ten ports");

    fn ends(remote_port: u16) -> (Endpoint, Endpoint) {
        let local = Endpoint::v4(Ipv4Addr::new(10, 0, 0, 1), 0);
        (local, Endpoint::v4(Ipv4Addr::new(10, 0, 0, 2), remote_port))
    }

    #[test]
    fn a_range_is_walked_once_before_a_port_comes_again() {
        let mut demux = Demux::new(Key([1, 2]), RANGE);
        let (local, remote) = ends(80);
        let mut ports: [u16; 20] =
            core::array::from_fn(|_| demux.port_for(local, remote, |_| true).expect("a port"));
        assert_eq!(ports[..10], ports[10..], "the oldest comes first");
        ports[..10].sort_unstable();
        assert!(ports[..10].iter().copied().eq(5000..5010));
    }

    #[test]
    fn a_connection_elsewhere_does_not_show_in_the_ports_of_another_destination() {
        let (mut quiet, mut busy) = (
            Demux::new(Key([1, 2]), RANGE),
            Demux::new(Key([1, 2]), RANGE),
        );
        let (local, remote) = ends(80);
        for _ in 0..7 {
            busy.port_for(local, ends(81).1, |_| true);
        }
        assert_eq!(
            quiet.port_for(local, remote, |_| true),
            busy.port_for(local, remote, |_| true)
        );
    }

    #[test]
    fn a_taken_name_is_passed_over_and_an_exhausted_range_says_so() {
        let mut demux = Demux::new(Key([1, 2]), RANGE);
        let (local, remote) = ends(80);
        for index in 0..10 {
            let port = demux.port_for(local, remote, |_| true).expect("a port");
            let local = Endpoint { port, ..local };
            demux
                .connect(&FourTuple { local, remote }, index)
                .expect("room");
        }
        assert_eq!(demux.port_for(local, remote, |_| true), None);
        assert!(demux.port_for(local, ends(81).1, |_| true).is_some());
    }
}
