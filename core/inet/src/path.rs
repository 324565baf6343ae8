//! How large packets may be on their way to a destination (RFC 1191, RFC 8201).
//!
//! Nothing is known of most paths: they take what our link takes. A router that could not
//! pass a packet on names the size that it can; the answer is kept for ten minutes and
//! then tried anew. The table is small, and its oldest entry goes first: who floods
//! it with lies gains that some truth is learned again.
//!
//! A path may also swallow packets without a word (RFC 2923). Who finds that large packets
//! are lost and small ones are not calls [`Paths::suspect`]: the path is taken to
//! be as narrow as paths get, which is what RFC 8899 5.2 calls the base size.

use alloc::collections::BTreeMap;
use core::net::IpAddr;

use base::{Duration, Instant};
use wire::IPV6_MTU_MIN;

/// Destinations remembered.
const PATHS_MAX: usize = 256;
/// RFC 8201 5.3: an estimate is not raised sooner.
const LIFETIME: Duration = Duration::from_secs(600);
/// Linux's `min_pmtu`: what an IPv4 path takes at least, as far as we believe.
const IPV4_PATH_MIN: u16 = 552;

/// RFC 1191 7: sizes that links have, for routers that do not say theirs.
const PLATEAUS: [u16; 10] = [
    32000,
    17914,
    8166,
    4352,
    2002,
    1492,
    1280,
    1006,
    576,
    IPV4_PATH_MIN,
];

struct Path {
    mtu: u16,
    learned: Instant,
}

/// What is known of paths.
#[derive(Default)]
pub(crate) struct Paths {
    by_destination: BTreeMap<IpAddr, Path>,
}

/// What a router says of a packet that it could not pass on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// What the next link takes; zero if it does not say.
    pub mtu: u32,
    /// Bytes of the packet, as its quoted header says.
    pub sent: u16,
    /// What the path takes as far as we knew.
    pub known: u16,
}

/// The narrowest path that there is.
pub(crate) const fn narrowest(dst: IpAddr) -> u16 {
    match dst {
        IpAddr::V4(_) => IPV4_PATH_MIN,
        IpAddr::V6(_) => IPV6_MTU_MIN,
    }
}

impl Paths {
    /// Largest packet to `dst`, if less than the link's `mtu` is known.
    pub fn mtu_to(&self, dst: IpAddr, mtu: u16) -> u16 {
        match self.by_destination.get(&dst) {
            Some(path) => path.mtu.min(mtu),
            None => mtu,
        }
    }

    /// A router could not pass on a packet of ours to `dst`. Returns the new estimate;
    /// `None` if it tells nothing new or nothing that can be.
    pub fn learn(&mut self, dst: IpAddr, refusal: Refusal, now: Instant) -> Option<u16> {
        let Refusal { mtu, sent, known } = refusal;
        let claimed = match (mtu, dst) {
            (0, IpAddr::V4(_)) => PLATEAUS.into_iter().find(|size| *size < sent)?,
            // RFC 8201 4: no IPv6 link is that narrow.
            (0..1280, IpAddr::V6(_)) => return None,
            _ => mtu.min(u32::from(u16::MAX)) as u16,
        };
        let mtu = claimed.max(narrowest(dst));
        if mtu >= known {
            return None;
        }
        self.insert(dst, mtu, now);
        Some(mtu)
    }

    /// Large packets to `dst` vanish.
    pub fn suspect(&mut self, dst: IpAddr, now: Instant) {
        self.insert(dst, narrowest(dst), now);
    }

    fn insert(&mut self, dst: IpAddr, mtu: u16, now: Instant) {
        if self.by_destination.len() >= PATHS_MAX && !self.by_destination.contains_key(&dst) {
            let paths = self.by_destination.iter();
            let oldest = paths.min_by_key(|(_, path)| path.learned);
            if let Some(oldest) = oldest.map(|(dst, _)| *dst) {
                self.by_destination.remove(&oldest);
            }
        }
        let learned = now;
        self.by_destination.insert(dst, Path { mtu, learned });
    }

    /// Forgets old estimates; says whether there were any.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = self.by_destination.len();
        self.by_destination
            .retain(|_, path| path.learned + LIFETIME > now);
        self.by_destination.len() < before
    }

    /// When the oldest estimate ends.
    pub fn next_deadline(&self) -> Option<Instant> {
        let paths = self.by_destination.values();
        paths.map(|path| path.learned + LIFETIME).min()
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.by_destination.len()
    }
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
    const NOW: Instant = Instant::from_millis(1000);

    fn learn(paths: &mut Paths, dst: IpAddr, mtu: u32, sent: u16, now: Instant) -> Option<u16> {
        let known = paths.mtu_to(dst, 1500);
        paths.learn(dst, Refusal { mtu, sent, known }, now)
    }

    #[test]
    fn an_estimate_only_shrinks_and_is_forgotten_after_ten_minutes() {
        let mut paths = Paths::default();
        assert_eq!(learn(&mut paths, V6, 1400, 1500, NOW), Some(1400));
        assert_eq!(learn(&mut paths, V6, 1450, 1500, NOW), None);
        assert_eq!(paths.mtu_to(V6, 1500), 1400);
        paths.expire(NOW + LIFETIME - Duration::from_millis(1));
        assert_eq!(paths.mtu_to(V6, 1500), 1400);
        assert_eq!(paths.next_deadline(), Some(NOW + LIFETIME));
        paths.expire(NOW + LIFETIME);
        assert_eq!(
            (paths.mtu_to(V6, 1500), paths.next_deadline()),
            (1500, None)
        );
    }

    #[test]
    fn no_path_is_narrower_than_its_family_allows() {
        let mut paths = Paths::default();
        assert_eq!(learn(&mut paths, V6, 1279, 1500, NOW), None);
        assert_eq!(learn(&mut paths, V6, 1280, 1500, NOW), Some(1280));
        assert_eq!(learn(&mut paths, V4, 68, 1500, NOW), Some(IPV4_PATH_MIN));
        assert_eq!(learn(&mut paths, V4, 68, 1500, NOW), None, "nothing new");
    }

    #[test]
    fn a_router_that_names_no_size_means_the_next_plateau() {
        let mut paths = Paths::default();
        assert_eq!(learn(&mut paths, V4, 0, 1500, NOW), Some(1492));
        assert_eq!(learn(&mut paths, V4, 0, 1492, NOW), Some(1280));
        assert_eq!(learn(&mut paths, V4, 0, 552, NOW), None);
    }

    #[test]
    fn a_router_that_names_a_size_no_smaller_than_the_links_is_not_believed() {
        let mut paths = Paths::default();
        assert_eq!(learn(&mut paths, V6, 1500, 1500, NOW), None);
        assert_eq!(learn(&mut paths, V4, 9000, 1500, NOW), None);
    }

    #[test]
    fn a_flood_of_reports_forgets_the_oldest() {
        let mut paths = Paths::default();
        for host in 0..2 * PATHS_MAX as u32 {
            let dst = IpAddr::V4(Ipv4Addr::from_bits(host));
            let now = Instant::from_millis(u64::from(host));
            assert_eq!(learn(&mut paths, dst, 1000, 1500, now), Some(1000));
        }
        assert_eq!(paths.len(), PATHS_MAX);
        assert_eq!(paths.mtu_to(IpAddr::V4(Ipv4Addr::from_bits(0)), 1500), 1500);
    }

    #[test]
    fn a_black_hole_is_taken_to_be_as_narrow_as_paths_get() {
        let mut paths = Paths::default();
        paths.suspect(V6, NOW);
        paths.suspect(V4, NOW);
        assert_eq!(
            (paths.mtu_to(V6, 1500), paths.mtu_to(V4, 1500)),
            (IPV6_MTU_MIN, IPV4_PATH_MIN)
        );
    }
}
