//! An event: what a descriptor stands for.
//!
//! `open` makes one, `file` is its descriptor, `output` says what it writes where. It has a `gauge`
//! at each thread or CPU, which hang there in a list (`watch`) and tell what their counters show
//! (`reading`).

mod file;
mod gauge;
mod open;
mod output;
mod reading;
pub(crate) mod watch;

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use base::CpuId;
use cred::{Account, Charge, Counted};
use mach::mem::fallible::{self, TryPush};
use mach::profile::tap::Tap;
use mach::sync::Spin;
use sync::poll::{Events, Pollee};
use sync::{Error, Result};
use task::Thread;

use crate::attributes::{AttrBits, Attributes};
use crate::limits::USER_GAUGES_MAX;
use crate::ring::Ring;
pub use file::event_of;
pub(crate) use gauge::Gauge;
use gauge::{Count, Place};
pub use open::open;
use watch::ON_CPU;

/// Events that one group may have.
const GROUP_MAX: usize = 32;

/// Whom a program wants to know about.
#[derive(Clone)]
pub enum Target {
    /// A thread.
    Thread(Arc<Thread>),
    /// A CPU, whoever runs on it.
    Cpu(CpuId),
}

/// An event.
pub struct Event {
    /// Its number, another one for each.
    id: u64,
    pub(crate) attributes: Attributes,
    /// It is to count, as far as the first of its group does.
    is_wanted: AtomicBool,
    /// Its gauges, the first of them the target's as long as that lives.
    gauges: Spin<Vec<Arc<Gauge>>>,
    /// What threads that have ended had counted.
    left: Spin<Count>,
    /// The first event of its group, if it is another.
    leader: Option<Weak<Event>>,
    /// Of the first: the others.
    members: Spin<Vec<Weak<Event>>>,
    /// Who pays.
    payer: Arc<Account>,
    pollee: Pollee,
    /// Nanoseconds from sample to sample.
    period_ns: AtomicU64,
    /// Where samples and news are written to, as long as it is mapped.
    ring: Spin<Weak<Ring<Event>>>,
    /// Samples are taken as long as it lives.
    _tap: Option<Tap>,
    me: Weak<Event>,
}

impl Event {
    /// A counted reference to it.
    fn arc(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }

    /// Puts a gauge at the target.
    pub(crate) fn hang(&self, target: &Target) -> Result<()> {
        let charge = self.charge(Counted::Gauges, 1, USER_GAUGES_MAX)?;
        let place = match target {
            Target::Thread(thread) => Place::Thread(Arc::downgrade(thread)),
            Target::Cpu(cpu) => Place::Cpu(*cpu),
        };
        let kind = self.attributes.kind;
        let gauge = fallible::arc(Gauge::new(self.me.clone(), kind, place, charge))?;
        {
            let mut gauges = self.gauges.lock();
            gauges.try_push(gauge.clone())?;
            if self.is_on() {
                gauge.start();
            }
        }
        let hung = match target {
            Target::Thread(thread) => watch::hang_at(thread, gauge.clone()),
            Target::Cpu(cpu) if self.writes() => ON_CPU.of(*cpu).hang(gauge.clone()),
            Target::Cpu(_) => Ok(()),
        };
        hung.inspect_err(|_| self.forget(&gauge))
    }

    /// Whether it ever writes to a ring.
    fn writes(&self) -> bool {
        let attributes = &self.attributes;
        attributes.period_ns.is_some() || attributes.hears.intersects(AttrBits::EVENTS)
    }

    /// Whether it counts.
    fn is_on(&self) -> bool {
        let leader = self.leader.as_ref().and_then(Weak::upgrade);
        let leads = leader.is_none_or(|leader| leader.is_wanted.load(Relaxed));
        leads && self.is_wanted.load(Relaxed)
    }

    /// Switches it on or off, and with it those that it leads.
    pub(crate) fn switch(&self, is_wanted: bool) {
        self.is_wanted.store(is_wanted, Relaxed);
        self.settle();
        let mut index = 0;
        while let Some(member) = self.member(index) {
            member.upgrade().inspect(|member| member.settle());
            index += 1;
        }
    }

    fn member(&self, index: usize) -> Option<Weak<Event>> {
        self.members.lock().get(index).cloned()
    }

    /// All its gauges do what it does.
    fn settle(&self) {
        let gauges = self.gauges.lock();
        let is_on = self.is_on();
        for gauge in gauges.iter() {
            match is_on {
                true => gauge.start(),
                false => gauge.stop(),
            }
        }
    }

    fn charge(&self, kind: Counted, amount: u64, limit: u64) -> Result<Charge> {
        let charged = self.payer.charge_many(kind, amount, limit);
        charged.map_err(|_| Error::TooManyFiles)
    }

    /// The gauge is no longer one of it.
    fn forget(&self, gauge: &Arc<Gauge>) {
        let mut gauges = self.gauges.lock();
        if let Some(at) = gauges.iter().position(|known| Arc::ptr_eq(known, gauge)) {
            drop(gauges.remove(at));
        }
    }

    /// The thread of the gauge ends: what was counted stays. With the last of them there is
    /// nothing more to come.
    pub(crate) fn bury(&self, gauge: &Arc<Gauge>) {
        gauge.stop();
        *self.left.lock() += gauge.count();
        self.forget(gauge);
        if self.is_over() {
            self.pollee.notify(Events::HUP);
        }
    }

    /// Whether all threads that it was about have ended.
    fn is_over(&self) -> bool {
        self.gauges.lock().is_empty()
    }

    /// What all gauges have counted.
    fn count(&self) -> Count {
        let gauges = self.gauges.lock();
        let mut sum = *self.left.lock();
        gauges.iter().for_each(|gauge| sum += gauge.count());
        sum
    }

    /// It counts from zero again.
    fn reset(&self) {
        let gauges = self.gauges.lock();
        self.left.lock().value = 0;
        gauges.iter().for_each(|gauge| gauge.reset());
    }

    /// Whether it may be the first of a group with an event like this.
    fn may_lead(&self, target: &Target, attributes: &Attributes) -> bool {
        let is_same_target = match (self.gauges.lock().first(), target) {
            (None, _) => false,
            (Some(first), target) => match (&first.place, target) {
                (Place::Thread(mine), Target::Thread(theirs)) => {
                    core::ptr::eq(mine.as_ptr(), &**theirs)
                }
                (Place::Cpu(mine), Target::Cpu(theirs)) => mine == theirs,
                _ => false,
            },
        };
        let has_room = self.members.lock().len() < GROUP_MAX;
        let is_alike = self.attributes.is_inherited == attributes.is_inherited;
        let is_same_cpu = self.attributes.only_on == attributes.only_on;
        self.leader.is_none() && is_same_target && is_same_cpu && has_room && is_alike
    }

    /// The members of its group, itself first if it leads.
    fn group(&self) -> Result<Vec<Arc<Event>>> {
        let mut group = Vec::new();
        group.try_push(self.me.upgrade().ok_or(Error::BadFile)?)?;
        for member in self.members.lock().iter().filter_map(Weak::upgrade) {
            group.try_push(member)?;
        }
        Ok(group)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        for gauge in core::mem::take(self.gauges.get_mut()) {
            match &gauge.place {
                Place::Cpu(cpu) => ON_CPU.of(*cpu).take_down(&gauge),
                Place::Thread(thread) => {
                    let thread = thread.upgrade();
                    if let Some(watch) = thread.as_deref().and_then(watch::at_thread) {
                        watch.take_down(&gauge);
                    }
                }
            }
        }
    }
}
