//! Which groups we listen to, and when routers are told (RFC 3376, RFC 3810).
//!
//! A group has members: sockets, and addresses of ours whose solicited-node group it is.
//! The first member makes us report it, twice in case one report is lost; the last one's
//! leaving is reported too. A router's question is answered after a random time, so that
//! its listeners do not all answer at once; questions may ask for haste, and we answer for
//! each group twice a second at most, which bounds what they can make us send.
//!
//! An old router's question turns the older protocol on for a while (RFC 3376 7.2.1).
//! Not here: sources (we listen to any), and the messages (`igmp`, `ipv6/mld`).

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::{Duration, Instant};

use crate::error::Error;

/// Groups that we listen to, of both families.
const GROUPS_MAX: usize = 256;
/// Reports of a new member (the protocols' robustness variable).
const REPORTS: u8 = 2;
/// Between two unsolicited reports, at most.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// No question is answered sooner, ...
const ANSWER_AFTER: Duration = Duration::from_millis(500);
/// ... and its answers are spread over this time at least.
const DELAY_MIN: Duration = Duration::from_secs(1);
/// Leisure that a question may give.
const DELAY_MAX: Duration = Duration::from_secs(60);
/// RFC 3376 8.12: robustness times query interval plus one response interval.
const OLD_ROUTER_PRESENT: Duration = Duration::from_secs(260);

const ALL_HOSTS_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// All nodes of the link.
pub(crate) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_OF_INTERFACE: Ipv6Addr = Ipv6Addr::new(0xff01, 0, 0, 0, 0, 0, 0, 1);

struct Group {
    addr: IpAddr,
    members: u32,
    /// Unsolicited reports still to come.
    reports_left: u8,
    due: Instant,
}

/// All groups.
pub(crate) struct Groups {
    groups: Vec<Group>,
    /// Until when a router of the older version counts as present: IPv4's, IPv6's.
    old_router_until: [Instant; 2],
}

impl Default for Groups {
    fn default() -> Self {
        Self {
            groups: Vec::new(),
            old_router_until: [Instant::START; 2],
        }
    }
}

/// Groups that everybody listens to and nobody reports.
fn is_universal(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group == ALL_HOSTS_V4,
        IpAddr::V6(group) => group == ALL_NODES || group == ALL_NODES_OF_INTERFACE,
    }
}

/// RFC 3810 6: groups of the own interface are nobody else's business.
pub(crate) fn is_reported(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(_) => !is_universal(group),
        IpAddr::V6(addr) => !is_universal(group) && addr.octets()[1] & 0xf > 1,
    }
}

fn family(group: IpAddr) -> usize {
    usize::from(group.is_ipv6())
}

impl Groups {
    /// Whether packets to `group` are for us.
    pub fn contains(&self, group: IpAddr) -> bool {
        is_universal(group) || self.groups.iter().any(|known| known.addr == group)
    }

    /// Adds a member; says whether the group is new, so that a first report is due.
    ///
    /// Errors: `NoBuffers` if there are too many groups.
    pub fn join(&mut self, group: IpAddr, now: Instant, random: u64) -> Result<bool, Error> {
        if let Some(known) = self.groups.iter_mut().find(|known| known.addr == group) {
            known.members += 1;
            return Ok(false);
        }
        if self.groups.len() >= GROUPS_MAX {
            return Err(Error::NoBuffers);
        }
        self.groups.try_reserve(1).map_err(|_| Error::NoBuffers)?;
        let is_told = is_reported(group);
        self.groups.push(Group {
            addr: group,
            members: 1,
            reports_left: if is_told { REPORTS - 1 } else { 0 },
            due: match is_told {
                true => now + spread(REPORT_INTERVAL, random),
                false => Instant::NEVER,
            },
        });
        Ok(is_told)
    }

    /// Takes a member away; says whether it was the last and routers hear of it.
    pub fn leave(&mut self, group: IpAddr) -> bool {
        let Some(at) = self.groups.iter().position(|known| known.addr == group) else {
            return false;
        };
        self.groups[at].members -= 1;
        if self.groups[at].members > 0 {
            return false;
        }
        self.groups.swap_remove(at);
        is_reported(group)
    }

    /// A router asks about `group`, or about all groups of its family.
    pub fn on_query(&mut self, query: Query, now: Instant, mut random: impl FnMut() -> u64) {
        if query.is_old_version {
            self.old_router_until[usize::from(query.is_v6)] = now + OLD_ROUTER_PRESENT;
        }
        let delay = query.max_delay.clamp(DELAY_MIN, DELAY_MAX);
        for known in &mut self.groups {
            let is_asked = match query.group {
                Some(group) => known.addr == group,
                None => known.addr.is_ipv6() == query.is_v6,
            };
            if is_asked && is_reported(known.addr) {
                known.due = known.due.min(now + ANSWER_AFTER + spread(delay, random()));
            }
        }
    }

    /// A group to report now.
    pub fn pop_due(&mut self, now: Instant, random: u64) -> Option<IpAddr> {
        let group = self.groups.iter_mut().find(|group| group.due <= now)?;
        group.due = Instant::NEVER;
        if group.reports_left > 0 {
            group.reports_left -= 1;
            if group.reports_left > 0 {
                group.due = now + spread(REPORT_INTERVAL, random);
            }
        }
        Some(group.addr)
    }

    /// Whether routers of `group`'s family understand the older version only.
    pub fn is_old_version(&self, group: IpAddr, now: Instant) -> bool {
        self.old_router_until[family(group)] > now
    }

    /// When the next report is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        let due = self.groups.iter().map(|group| group.due);
        due.min().filter(|due| *due < Instant::NEVER)
    }

    pub fn iter(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.groups.iter().map(|group| group.addr)
    }
}

/// A router's question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query {
    pub group: Option<IpAddr>,
    pub is_v6: bool,
    pub is_old_version: bool,
    pub max_delay: Duration,
}

/// A random part of `time`.
fn spread(time: Duration, random: u64) -> Duration {
    let nanos = time.as_nanos();
    Duration::from_nanos(random % nanos.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: IpAddr = IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb));
    const NOW: Instant = Instant::from_millis(1000);

    fn query(group: Option<IpAddr>, max_delay: Duration) -> Query {
        Query {
            group,
            is_v6: true,
            is_old_version: false,
            max_delay,
        }
    }

    #[test]
    fn only_the_first_member_and_the_last_are_news() {
        let mut groups = Groups::default();
        assert_eq!(groups.join(GROUP, NOW, 1), Ok(true));
        assert_eq!(groups.join(GROUP, NOW, 1), Ok(false));
        assert!(!groups.leave(GROUP) && groups.contains(GROUP));
        assert!(groups.leave(GROUP) && !groups.contains(GROUP));
        assert!(!groups.leave(GROUP), "nobody was left");
    }

    #[test]
    fn a_report_is_repeated_once_in_case_it_was_lost() {
        let mut groups = Groups::default();
        groups.join(GROUP, NOW, 500_000_000).expect("room");
        let due = groups.next_deadline().expect("a second report");
        assert_eq!(due, NOW + Duration::from_millis(500));
        assert_eq!(groups.pop_due(due, 0), Some(GROUP));
        assert_eq!(
            (groups.pop_due(due, 0), groups.next_deadline()),
            (None, None)
        );
    }

    #[test]
    fn hasty_questions_are_answered_twice_a_second_at_most() {
        let mut groups = Groups::default();
        groups.join(GROUP, NOW, 0).expect("room");
        while groups.pop_due(NOW + REPORT_INTERVAL, 0).is_some() {}
        let mut reports = 0;
        for millis in 0..10_000 {
            let now = NOW + REPORT_INTERVAL + Duration::from_millis(millis);
            groups.on_query(query(None, Duration::ZERO), now, || millis * 77_777_777);
            reports += usize::from(groups.pop_due(now, 0).is_some());
        }
        assert!((1..=20).contains(&reports), "{reports} reports in 10 s");
    }

    #[test]
    fn everybody_listens_to_all_nodes_and_nobody_says_so() {
        let mut groups = Groups::default();
        let all = IpAddr::V6(ALL_NODES);
        assert!(groups.contains(all));
        assert_eq!(groups.join(all, NOW, 0), Ok(false));
        groups.on_query(query(None, DELAY_MAX), NOW, || 1);
        assert_eq!(groups.next_deadline(), None);
    }

    #[test]
    fn an_old_router_is_forgotten_again() {
        let mut groups = Groups::default();
        let old = Query {
            is_old_version: true,
            ..query(Some(GROUP), DELAY_MAX)
        };
        groups.on_query(old, NOW, || 0);
        assert!(groups.is_old_version(GROUP, NOW));
        assert!(!groups.is_old_version(IpAddr::V4(ALL_HOSTS_V4), NOW));
        assert!(!groups.is_old_version(GROUP, NOW + OLD_ROUTER_PRESENT));
    }

    #[test]
    fn groups_are_bounded() {
        let mut groups = Groups::default();
        let joined = (0..2 * GROUPS_MAX as u32)
            .filter(|host| {
                let group = IpAddr::V4(Ipv4Addr::from_bits(0xef00_0000 | host));
                groups.join(group, NOW, 0).is_ok()
            })
            .count();
        assert_eq!(joined, GROUPS_MAX);
    }
}
