//! Pipes: `core/pipe` as files that threads wait for and users pay for.
//!
//! The contents are guarded by a sleeping lock, because copying to or from a program may block
//! on a page fault.
//!
//! `flow` reads and writes, `look` and `hold` serve splice and tee, `end` is the file.

mod end;
mod flow;
mod hold;
mod look;

use alloc::sync::Arc;

use ::pipe::News;
use base::PAGE_BYTES;
use cred::{Account, Capability, Charge, Counted, Credentials};
use mach::mem::fallible::Heap;
use mach::sync::Spin;
use mm::refusal::Refusal;
use sync::poll::{Events, Pollee};
use sync::{Error, Result, Sleeping};
use task::current;

pub use self::end::PipeEnd;
use vfs::file::next_number;

pub use ::pipe::Access;

/// Linux's capacity of a new pipe, in pages.
const PAGES_DEFAULT: usize = 16;
/// Linux's default for /proc/sys/fs/pipe-max-size, in bytes.
const CAPACITY_MAX: usize = 1 << 20;
/// Pages that all pipes of a user may fill (Linux's default for fs.pipe-user-pages-soft): a new
/// pipe beyond has only [`PAGES_POOR`], and none may grow. Administrators may go on.
pub const USER_PAGES_MAX: u64 = 16_384;
/// Capacity of a new pipe whose user has many, in pages.
const PAGES_POOR: usize = 2;

/// The charge for a pipe of `pages` pages of the current thread's user.
///
/// Errors: `NotPermitted` beyond the limit.
fn pay(pages: usize) -> Result<Charge> {
    let uid = current().credentials.with(|who| who.user.real);
    let charge = Account::of(uid)?.charge_many(Counted::PipePages, pages as u64, user_limit());
    charge.map_err(|_| Error::NotPermitted)
}

/// What the current thread's limit is.
fn user_limit() -> u64 {
    let may_more = [Capability::SysResource, Capability::SysAdmin];
    let is_free = |who: &Arc<Credentials>| may_more.iter().any(|right| who.has(*right));
    match current().credentials.with(is_free) {
        true => u64::MAX,
        false => USER_PAGES_MAX,
    }
}

/// Whose a pipe is, which counts where an end is opened again by its name in /proc/PID/fd, as shells name
/// what `<(command)` writes.
#[derive(Clone, Copy)]
struct Owner {
    uid: u32,
    gid: u32,
    mode: u32,
}

impl Owner {
    /// Whoever made it, and nobody else (pipe(7), get_pipe_inode).
    fn current() -> Self {
        let ids = |who: &Arc<Credentials>| (who.user.fs, who.group.fs);
        let (uid, gid) = current().credentials.with(ids);
        let mode = 0o600;
        Self { uid, gid, mode }
    }

    /// Nobody in particular: whoever has an end may open it again.
    const EVERYBODY: Self = Self {
        uid: 0,
        gid: 0,
        mode: 0o666,
    };
}

/// The pipe itself.
pub struct Pipe {
    number: u64,
    owner: Owner,
    pub(super) flow: ::pipe::Pipe<Sleeping, Heap>,
    /// For the pages of the capacity.
    charge: Spin<Option<Charge>>,
    pub(super) pollee: Pollee,
}

impl Default for Pipe {
    fn default() -> Self {
        Self::of(Owner::current())
    }
}

impl Pipe {
    fn of(owner: Owner) -> Self {
        let charge = pay(PAGES_DEFAULT).ok();
        let pages = if charge.is_some() {
            PAGES_DEFAULT
        } else {
            PAGES_POOR
        };
        Self {
            number: next_number(),
            owner,
            flow: ::pipe::Pipe::new(pages),
            charge: Spin::new(charge),
            pollee: Pollee::new(),
        }
    }
}

/// A new pipe of the current user's: its reading and its writing end.
pub fn create() -> (Arc<PipeEnd>, Arc<PipeEnd>) {
    ends(Pipe::default())
}

/// The same for a program that the kernel starts, as whichever user: it may open its /dev/stdout.
pub fn create_for_everybody() -> (Arc<PipeEnd>, Arc<PipeEnd>) {
    ends(Pipe::of(Owner::EVERYBODY))
}

fn ends(pipe: Pipe) -> (Arc<PipeEnd>, Arc<PipeEnd>) {
    let pipe = Arc::new(pipe);
    (
        PipeEnd::new(pipe.clone(), Access::READ),
        PipeEnd::new(pipe, Access::WRITE),
    )
}

impl Pipe {
    /// Tells those whom it concerns.
    fn tell(&self, news: News) {
        match news {
            News::None => {}
            News::FirstBytes => self.pollee.notify(Events::READABLE),
            News::MoreBytes => self.pollee.notify_observers(Events::READABLE),
            News::Room => self.pollee.notify(Events::WRITABLE),
        }
    }

    /// Makes at least `bytes` fit (F_SETPIPE_SZ); returns how many do.
    ///
    /// Errors: `NotPermitted` beyond the system's limit or the user's, `Busy` if more is in it.
    pub fn set_capacity(&self, bytes: usize) -> Result<usize> {
        if bytes > CAPACITY_MAX {
            return Err(Error::NotPermitted);
        }
        let pages = bytes.div_ceil(PAGE_BYTES).max(1).next_power_of_two();
        let pay = || self.pay_for(pages).map_err(Refusal::from);
        let news = self.flow.resize(pages, pay)?;
        self.tell(news);
        Ok(self.flow.capacity())
    }

    /// Charges what `pages` are more than was paid for.
    fn pay_for(&self, pages: usize) -> Result<()> {
        let mut charge = self.charge.lock();
        match &mut *charge {
            Some(paid) => {
                let more = (pages as u64).saturating_sub(paid.amount());
                paid.grow(more, user_limit())
                    .map_err(|_| Error::NotPermitted)
            }
            None => {
                *charge = Some(pay(pages)?);
                Ok(())
            }
        }
    }
}
