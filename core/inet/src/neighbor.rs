//! The neighbour cache: ARP (RFC 826, RFC 1122 section 2.3.2).
//!
//! An entry is *incomplete* while a question is out, then *known*. A known entry that is
//! older than [`FRESH`] is still used, but a question goes out with it; if nobody
//! answers [`QUESTIONS_MAX`] times, the entry goes. Packets wait in small bounded queues.
//! Connections keep a copy of the MAC address and compare an epoch; so entries are only
//! looked up when something has changed.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use base::{Duration, Instant};
use mbuf::Chain;
use wire::MacAddr;

use crate::output::Offload;

/// Neighbours remembered.
const ENTRIES_MAX: usize = 512;
/// Packets that wait for one neighbour.
const WAITING_MAX: usize = 64;
/// How long an answer is trusted without a question.
const FRESH: Duration = Duration::from_secs(30);
/// Between two questions.
const QUESTION_INTERVAL: Duration = Duration::from_secs(1);
/// Questions before we give up.
const QUESTIONS_MAX: u8 = 3;

/// A packet that waits for a station.
pub(crate) struct Waiting {
    pub packet: Chain,
    pub offload: Offload,
}

struct Entry {
    ip: Ipv4Addr,
    mac: Option<MacAddr>,
    confirmed: Instant,
    questions: u8,
    asked: Instant,
    waiting: Vec<Waiting>,
}

/// What to do with a packet for a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Resolution {
    /// Send it there.
    Known(MacAddr),
    /// Send it there, and ask whether that is still true.
    Stale(MacAddr),
    /// Let it wait and ask.
    Ask,
    /// Let it wait; a question is out.
    Wait,
}

/// A question to repeat, or a neighbour that is gone with the packets that waited.
pub(crate) enum Overdue {
    Ask(Ipv4Addr, Option<MacAddr>),
    Gone(Vec<Waiting>),
}

/// All neighbours.
#[derive(Default)]
pub(crate) struct Neighbors {
    entries: Vec<Entry>,
}

impl Neighbors {
    fn position(&self, ip: Ipv4Addr) -> Option<usize> {
        self.entries.iter().position(|entry| entry.ip == ip)
    }

    /// Until when a copy of a known entry may be used without asking here.
    pub fn fresh_until(&self, ip: Ipv4Addr) -> Instant {
        self.position(ip)
            .map_or(Instant::START, |at| self.entries[at].confirmed + FRESH)
    }

    pub fn resolve(&mut self, ip: Ipv4Addr, now: Instant) -> Resolution {
        let Some(at) = self.position(ip) else {
            self.insert(ip, None, now);
            return Resolution::Ask;
        };
        let entry = &mut self.entries[at];
        let Some(mac) = entry.mac else {
            return Resolution::Wait;
        };
        let is_stale = now.since(entry.confirmed) > FRESH;
        if !is_stale || now.since(entry.asked) < QUESTION_INTERVAL && entry.questions > 0 {
            return Resolution::Known(mac);
        }
        entry.questions = entry.questions.max(1);
        entry.asked = now;
        Resolution::Stale(mac)
    }

    /// Makes room by forgetting the entry that was confirmed longest ago.
    fn insert(&mut self, ip: Ipv4Addr, mac: Option<MacAddr>, now: Instant) {
        if self.entries.len() >= ENTRIES_MAX {
            let oldest = (0..self.entries.len()).min_by_key(|at| self.entries[*at].confirmed);
            if let Some(oldest) = oldest {
                self.entries.swap_remove(oldest);
            }
        }
        let questions = u8::from(mac.is_none());
        self.entries.push(Entry {
            ip,
            mac,
            confirmed: now,
            questions,
            asked: now,
            waiting: Vec::new(),
        });
    }

    /// Lets a packet wait; gives it back if too many do.
    pub fn wait(&mut self, ip: Ipv4Addr, packet: Waiting) -> Result<(), Waiting> {
        match self.position(ip).map(|at| &mut self.entries[at]) {
            Some(entry) if entry.waiting.len() < WAITING_MAX => {
                entry.waiting.push(packet);
                Ok(())
            }
            _ => Err(packet),
        }
    }

    /// Learns an address; returns the packets that waited for it. Strangers are learned
    /// only if `is_asking_us`. The flag says whether a copy somewhere is now wrong.
    pub fn learn(
        &mut self,
        ip: Ipv4Addr,
        mac: MacAddr,
        is_asking_us: bool,
        now: Instant,
    ) -> (Vec<Waiting>, bool) {
        match self.position(ip).map(|at| &mut self.entries[at]) {
            Some(entry) => {
                let is_changed = entry.mac != Some(mac);
                (entry.mac, entry.confirmed, entry.questions) = (Some(mac), now, 0);
                (core::mem::take(&mut entry.waiting), is_changed)
            }
            None => {
                if is_asking_us {
                    self.insert(ip, Some(mac), now);
                }
                (Vec::new(), false)
            }
        }
    }

    /// When a question must be repeated or given up.
    pub fn next_deadline(&self) -> Option<Instant> {
        let asking = self.entries.iter().filter(|entry| entry.questions > 0);
        asking.map(|entry| entry.asked + QUESTION_INTERVAL).min()
    }

    /// One question that is due.
    pub fn pop_overdue(&mut self, now: Instant) -> Option<Overdue> {
        let at = self
            .entries
            .iter()
            .position(|entry| entry.questions > 0 && entry.asked + QUESTION_INTERVAL <= now)?;
        let entry = &mut self.entries[at];
        if entry.questions >= QUESTIONS_MAX {
            return Some(Overdue::Gone(self.entries.swap_remove(at).waiting));
        }
        entry.questions += 1;
        entry.asked = now;
        Some(Overdue::Ask(entry.ip, entry.mac))
    }

    /// Addresses with their stations, for tools.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, MacAddr)> + '_ {
        self.entries
            .iter()
            .filter_map(|entry| Some((entry.ip, entry.mac?)))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}
