//! An event: what a descriptor stands for.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use base::CpuId;
use cred::{Account, Capability, Charge, Counted};
use mach::mem::fallible::{self, TryPush};
use mach::profile::tap::Tap;
use mach::sync::Spin;
use sync::poll::{Events, Pollee};
use sync::{Error, Result};
use task::{Caller, Thread, check_access, current};

use super::attributes::Hears;
use super::gauge::{Count, Gauge, Place};
use super::ring::Ring;
use super::watch::{self, ON_CPU};
use super::{Attributes, PARANOID, USER_GAUGES_MAX, sample};

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
    pub(super) id: u64,
    pub(super) attributes: Attributes,
    /// It is to count, as far as the first of its group does.
    is_wanted: AtomicBool,
    /// Its gauges, the first of them the target's as long as that lives.
    pub(super) gauges: Spin<Vec<Arc<Gauge>>>,
    /// What threads that have ended had counted.
    pub(super) left: Spin<Count>,
    /// The first event of its group, if it is another.
    pub(super) leader: Option<Weak<Event>>,
    /// Of the first: the others.
    pub(super) members: Spin<Vec<Weak<Event>>>,
    /// Who pays.
    payer: Arc<Account>,
    pub(super) pollee: Pollee,
    /// Nanoseconds from sample to sample.
    pub(super) period_ns: AtomicU64,
    /// Where samples and news are written to, as long as it is mapped.
    pub(super) ring: Spin<Weak<Ring>>,
    /// Samples are taken as long as it lives.
    _tap: Option<Tap>,
    pub(super) me: Weak<Event>,
}

/// An event for `target`, in the group of `leader`.
///
/// Errors: `AccessDenied` where the caller may not know it, `Invalid` for a group that cannot
/// be, `TooManyFiles` where there are too many, `Unsupported` where it wants samples and the
/// machine has nothing to take them with, `OutOfMemory`.
pub fn open(
    attributes: Attributes,
    target: &Target,
    leader: Option<&Arc<Event>>,
) -> Result<Arc<Event>> {
    check_right(target)?;
    if leader.is_some_and(|leader| !leader.may_lead(target, &attributes)) {
        return Err(Error::Invalid);
    }
    let uid = current().credentials.with(|who| who.user.real);
    let payer = Account::of(uid)?;
    let tap = attributes
        .period_ns
        .map(|_| Tap::open(sample::listen).ok_or(Error::Unsupported));
    let tap = tap.transpose()?;
    fallible::room_for_arc::<Event>()?;
    static LAST: AtomicU64 = AtomicU64::new(0);
    let event = Arc::new_cyclic(|me| Event {
        id: LAST.fetch_add(1, Relaxed) + 1,
        attributes,
        is_wanted: AtomicBool::new(!attributes.is_disabled),
        gauges: Spin::default(),
        left: Spin::default(),
        leader: leader.map(Arc::downgrade),
        members: Spin::default(),
        payer,
        pollee: Pollee::new(),
        period_ns: AtomicU64::new(attributes.period_ns.unwrap_or(0)),
        ring: Spin::default(),
        _tap: tap,
        me: me.clone(),
    });
    if let Some(leader) = leader {
        let mut members = leader.members.lock();
        members.retain(|member| member.strong_count() != 0);
        members.try_push(Arc::downgrade(&event))?;
    }
    event.hang(target)?;
    Ok(event)
}

/// Whether the caller may know what `target` does.
fn check_right(target: &Target) -> Result<()> {
    let may_all = current()
        .credentials
        .with(|who| who.has(Capability::Perfmon) || who.has(Capability::SysAdmin));
    let is_allowed = may_all
        || match target {
            Target::Thread(thread) => check_access(thread, Caller::Real).is_ok(),
            Target::Cpu(_) => PARANOID.load(Relaxed) as i64 <= 0,
        };
    is_allowed.then_some(()).ok_or(Error::AccessDenied)
}

impl Event {
    /// A counted reference to it.
    pub(super) fn arc(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }

    /// Puts a gauge at the target.
    pub(super) fn hang(&self, target: &Target) -> Result<()> {
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
        attributes.period_ns.is_some() || attributes.hears.intersects(Hears::EVENTS)
    }

    /// Whether it counts.
    fn is_on(&self) -> bool {
        let leader = self.leader.as_ref().and_then(Weak::upgrade);
        let leads = leader.is_none_or(|leader| leader.is_wanted.load(Relaxed));
        leads && self.is_wanted.load(Relaxed)
    }

    /// Switches it on or off, and with it those that it leads.
    pub(super) fn switch(&self, is_wanted: bool) {
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

    pub(super) fn charge(&self, kind: Counted, amount: u64, limit: u64) -> Result<Charge> {
        let charged = self.payer.charge_many(kind, amount, limit);
        charged.map_err(|_| Error::TooManyFiles)
    }

    /// The gauge is no longer one of it.
    pub(super) fn forget(&self, gauge: &Arc<Gauge>) {
        let mut gauges = self.gauges.lock();
        if let Some(at) = gauges.iter().position(|known| Arc::ptr_eq(known, gauge)) {
            drop(gauges.remove(at));
        }
    }

    /// The thread of the gauge ends: what was counted stays. With the last of them there is
    /// nothing more to come.
    pub(super) fn bury(&self, gauge: &Arc<Gauge>) {
        gauge.stop();
        *self.left.lock() += gauge.count();
        self.forget(gauge);
        if self.is_over() {
            self.pollee.notify(Events::HUP);
        }
    }

    /// Whether all threads that it was about have ended.
    pub(super) fn is_over(&self) -> bool {
        self.gauges.lock().is_empty()
    }

    /// What all gauges have counted.
    pub(super) fn count(&self) -> Count {
        let gauges = self.gauges.lock();
        let mut sum = *self.left.lock();
        gauges.iter().for_each(|gauge| sum += gauge.count());
        sum
    }

    /// It counts from zero again.
    pub(super) fn reset(&self) {
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
    pub(super) fn group(&self) -> Result<Vec<Arc<Event>>> {
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
