//! Making an event: who may, and what has to be there.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use cred::{Account, Capability};
use mach::mem::fallible::{self, TryPush};
use mach::profile::Who;
use mach::profile::tap::Tap;
use mach::sync::Spin;
use sched::Flags;
use sync::poll::Pollee;
use sync::{Error, Result};
use task::{Caller, check_access, current, try_current};

use super::{Event, Target};
use crate::attributes::Attributes;
use crate::limits::PARANOID;

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
        .map(|_| Tap::open(listen).ok_or(Error::Unsupported));
    let tap = tap.transpose()?;
    fallible::room_for_arc::<Event>()?;
    /// The last number given, as no two events may have the same.
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

/// Who runs here, and that it has a sample to give. Runs in the NMI handler.
fn listen() -> Who {
    let Some(thread) = try_current() else {
        return Who::default();
    };
    thread.set_flags(Flags::SAMPLES);
    Who {
        pid: thread.process.id(),
        tid: thread.id(),
        name: Default::default(),
    }
}
