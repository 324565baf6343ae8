//! Filters over a link as the kernel keeps them: made, attached, revoked (`link::filters` says what they admit).
//!
//! # Problem
//! Who may have which part of a link is decided by somebody with rights over it, who then goes away. The program
//! that gets a part has no rights, may pass it on, may die, and may have to lose it at once.
//!
//! # Idea
//! A [`Filter`] is what an open file holds (`kernel/xdp`): whoever has a descriptor has the filter, and with
//! the last one and the last socket that it is attached to it is gone. A link keeps a list of its own of what is
//! [`Made`]; so it can refuse predicates that cross, show them, and revoke one whoever holds it. One that
//! is revoked admits nothing any more, and its descriptor is an empty shell.
//!
//! # Bounds
//! [`FILTERS_MAX`] filters of a link, [`PER_USER_MAX`] of all that one user made. What is revoked still counts for its user
//! until it is closed.
//!
//! # Invariants
//! - The receive predicates in a link's list are apart or nested, so that at most one queue is a frame's.
//! - A filter is attached to one socket at a time, and so has one queue.
//!
//! Lock order: the lock of changes; a link's list, alone. What is made and what is revoked holds the lock of changes, so
//! nobody takes a queue by a filter that is being revoked.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use cred::{Account, Charge, Counted};
use link::filters::{FILTERS_MAX, Predicate, Sending};
use mach::mem::fallible::{self, TryGrow};
use mach::sync::Spin;
use mbuf::Chain;
use sync::{Error, Result};

use super::change::one_at_a_time;
use super::control::with_links;
use super::nic::{self, Nic};
use super::owner::{FrameOwner, OwnedLink, Ownership};
use crate::stack::NetStack;

/// Filters that are one user's at most.
pub const PER_USER_MAX: u64 = 96;

/// Their numbers are the machine's, so that none is ever two filters'.
static NUMBERS: AtomicU32 = AtomicU32::new(1);

/// A filter, as who holds its descriptor has it.
pub struct Filter {
    nic: Arc<Nic>,
    made: Arc<Made>,
    _charge: Charge,
}

/// What a link knows of a filter.
struct Made {
    id: u32,
    receives: Predicate,
    sends: Sending,
    is_revoked: AtomicBool,
    is_attached: AtomicBool,
    holder: Spin<Option<Holder>>,
    /// Frames that were not to leave.
    refused: AtomicU64,
}

/// Who has a queue by it.
#[derive(Clone, Copy)]
struct Holder {
    queue: u16,
    process: u32,
    user: u32,
}

/// What may leave by a filter. It keeps no filter: whoever moves frames at the moment of the last close has one still.
pub struct Outgoing(Arc<Made>);

/// A filter that is attached to a socket, until this is dropped.
pub struct Attachment(Arc<Filter>);

/// The filters of a link.
#[derive(Default)]
pub(super) struct Filters(Spin<Vec<Arc<Made>>>);

impl Filter {
    /// Makes one for an interface over a link, for somebody who has the right to.
    ///
    /// Errors: `WrongDevice` without such an interface, `Unsupported` for one that is no link over the card or an
    /// etherstub, `Exists` if another filter's receive predicate crosses this one, `NoSpace` if the link has as many
    /// as may be, `TooManyFiles` if the user has, `OutOfMemory`.
    pub fn new(
        of: &Arc<NetStack>,
        interface: u32,
        receives: Predicate,
        sends: Predicate,
    ) -> Result<Self> {
        one_at_a_time(|| {
            of.interface(interface).ok_or(Error::WrongDevice)?;
            let nic = nic::find(of, interface).ok_or(Error::Unsupported)?;
            let link = with_links(|links| links.info(nic.link));
            let station = link.ok_or(Error::WrongDevice)?.mac;
            let user = cred::credentials().with(|who| who.user.real);
            let charge = Account::of(user)?.charge(Counted::LinkFilters, PER_USER_MAX);
            let charge = charge.map_err(|_| Error::TooManyFiles)?;
            let made = fallible::arc(Made {
                id: NUMBERS.fetch_add(1, Relaxed),
                receives,
                sends: Sending::new(sends, station),
                is_revoked: AtomicBool::new(false),
                is_attached: AtomicBool::new(false),
                holder: Spin::new(None),
                refused: AtomicU64::new(0),
            })?;
            nic.filters.add(made.clone())?;
            Ok(Self {
                nic,
                made,
                _charge: charge,
            })
        })
    }

    /// Attaches it to a socket.
    ///
    /// Errors: `Busy` if another has it, `NetworkDown` if it was revoked.
    pub fn attach(self: &Arc<Self>) -> Result<Attachment> {
        self.check()?;
        match self.made.is_attached.swap(true, Relaxed) {
            true => Err(Error::Busy),
            false => Ok(Attachment(self.clone())),
        }
    }

    fn check(&self) -> Result<()> {
        match self.made.is_revoked.load(Relaxed) {
            true => Err(Error::NetworkDown),
            false => Ok(()),
        }
    }

    /// What may leave by it.
    pub fn outgoing(&self) -> Outgoing {
        Outgoing(self.made.clone())
    }
}

impl Outgoing {
    /// Whether a frame, which nobody can change any more, may leave.
    pub fn admits(&self, frame: &Chain) -> bool {
        !self.0.is_revoked.load(Relaxed) && self.0.sends.admits(frame)
    }

    /// So many frames were dropped because they were not to leave.
    pub fn count_refused(&self, frames: u64) {
        self.0.refused.fetch_add(frames, Relaxed);
    }

    /// Frames that were not to leave.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Relaxed)
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        self.nic.filters.remove(self.made.id);
    }
}

impl Attachment {
    /// The filter.
    pub fn filter(&self) -> &Arc<Filter> {
        &self.0
    }

    /// Gives a queue of the filter's link to `owner`, who gets what the filter admits.
    ///
    /// Errors: `NetworkDown` if it was revoked, `WrongDevice` for another interface than the link's, and those of
    /// [`own`](super::own).
    pub fn own(
        &self,
        (interface, queue): (u32, u16),
        owner: Arc<dyn FrameOwner>,
    ) -> Result<Ownership> {
        let Filter { nic, made, .. } = &*self.0;
        one_at_a_time(|| {
            self.0.check()?;
            if nic.number() != interface {
                return Err(Error::WrongDevice);
            }
            nic.own_filtered(queue, owner.clone(), (made.id, made.receives))?;
            // A stack that ends takes its links' filters whatever is locked.
            self.0.check().inspect_err(|_| nic.disown(queue, &owner))?;
            self.note(queue);
            let link = OwnedLink::whole(nic.clone(), queue);
            Ok(Ownership::new(link, owner))
        })
    }

    /// The same for one who has a queue of the link already.
    ///
    /// Errors: `NetworkDown` if it was revoked or the link is gone, `WrongDevice` if it is another link's,
    /// `OutOfMemory`.
    pub fn narrow(&self, owned: &Ownership) -> Result<()> {
        let Filter { nic, made, .. } = &*self.0;
        one_at_a_time(|| {
            self.0.check()?;
            if !owned.link().is_of(nic) {
                return Err(Error::WrongDevice);
            }
            let queue = owned.link().queue();
            nic.narrow(queue, owned.owner(), (made.id, made.receives))?;
            self.note(queue);
            Ok(())
        })
    }

    fn note(&self, queue: u16) {
        let user = cred::credentials().with(|who| who.user.real);
        *self.0.made.holder.lock() = Some(Holder {
            queue,
            process: task::current().process.id(),
            user,
        });
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        *self.0.made.holder.lock() = None;
        self.0.made.is_attached.store(false, Relaxed);
    }
}

impl Filters {
    fn add(&self, new: Arc<Made>) -> Result<()> {
        let mut all = self.0.lock();
        if all.len() >= FILTERS_MAX {
            return Err(Error::NoSpace);
        }
        let fits = |other: &Arc<Made>| new.receives.may_stand_beside(&other.receives);
        if !all.iter().all(fits) {
            return Err(Error::Exists);
        }
        all.make_room(1)?;
        all.push(new);
        Ok(())
    }

    /// Takes it out, if it is there.
    fn remove(&self, id: u32) -> Option<Arc<Made>> {
        let mut all = self.0.lock();
        let place = all.iter().position(|made| made.id == id)?;
        Some(all.remove(place))
    }

    /// Takes one out and has it admit nothing any more; false if it is not there.
    pub fn revoke(&self, id: u32) -> bool {
        let gone = self.remove(id);
        if let Some(made) = &gone {
            made.is_revoked.store(true, Relaxed);
        }
        gone.is_some()
    }

    /// The same of all.
    pub fn revoke_all(&self) {
        let gone = core::mem::take(&mut *self.0.lock());
        gone.iter()
            .for_each(|made| made.is_revoked.store(true, Relaxed));
    }

    /// As they are shown; `hits` knows how many frames a queue has by its filter.
    pub fn rows(&self, hits: impl Fn(u16) -> u64) -> Vec<linkctl::FilterRow> {
        let all = self.0.lock().clone();
        let row = |made: &Arc<Made>| {
            let holder = *made.holder.lock();
            linkctl::FilterRow {
                id: made.id,
                queue: holder.map(|holder| holder.queue),
                process: holder.map(|holder| holder.process),
                user: holder.map(|holder| holder.user),
                receives: text(&made.receives),
                sends: text(made.sends.predicate()),
                hits: holder.map_or(0, |holder| hits(holder.queue)),
                refused: made.refused.load(Relaxed),
            }
        };
        all.iter().map(row).collect()
    }
}

fn text(predicate: &Predicate) -> String {
    predicate.to_string()
}
