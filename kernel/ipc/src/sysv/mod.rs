//! System V's interprocess communication (svipc(7)): shared memory, semaphores, messages.
//!
//! Numbers, keys, permissions and the rules of semaphores and queues are `sysv`'s; here are the
//! waits, the memory, and what a process' end does. Objects stay until they are removed, so each
//! kind has Linux's limits.
//!
//! Lock order: a kind's registry, then an object's state; both are spin locks. Threads are woken
//! without them.

pub mod messages;
pub mod semaphores;
pub mod shared;

use cred::Capability;
use sync::{Error, Result};
use sysv::{Caller, Entry, Registry};
pub use sysv::{GetRequest, Message, Operation, Pick, VALUE_MAX};
use task::{self, current};

/// Has semaphores hear of the ends of processes; once at boot.
pub(crate) fn init() {
    task::on_process_exit(semaphores::end_process);
}

/// What an object's owner may change of it (IPC_SET).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The new owner.
    pub uid: u32,
    /// The new group.
    pub gid: u32,
    /// The new permissions.
    pub mode: u16,
}

/// What tools see of any object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Common {
    /// Its number.
    pub number: u32,
    /// Its key.
    pub key: i32,
    /// How often its place was used before.
    pub sequence: u32,
    /// Whose it is.
    pub owner: sysv::Owner,
}

/// Which object is looked at, and who may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// The one with this number, by who may read it.
    Number(u32),
    /// The one at this place of the table, by who may read it.
    Place(u32),
    /// The same, by anybody.
    PlaceForAll(u32),
}

/// What the kernel says of a refusal of the registries.
fn refused(error: sysv::Error) -> Error {
    match error {
        sysv::Error::NotFound => Error::NotFound,
        sysv::Error::Exists => Error::Exists,
        sysv::Error::Denied => Error::AccessDenied,
        sysv::Error::NotOwner => Error::NotPermitted,
        sysv::Error::Full => Error::NoSpace,
        sysv::Error::NoSuchNumber => Error::Invalid,
        sysv::Error::Removed => Error::Removed,
    }
}

/// Calls `act` with who calls.
fn as_caller<R>(act: impl FnOnce(&Caller<'_>) -> R) -> R {
    let credentials = current().credentials.get();
    let own = credentials.group.effective;
    act(&Caller {
        uid: credentials.user.effective,
        gid: own,
        is_in_group: &|group| group == own || credentials.groups.contains(&group),
        ignores_modes: credentials.has(Capability::IpcOwner),
        is_administrator: credentials.has(Capability::SysAdmin),
    })
}

/// Seconds since 1970.
fn now_seconds() -> i64 {
    clock::wall_now().as_secs() as i64
}

fn common<T>(number: u32, entry: &Entry<T>) -> Common {
    Common {
        number,
        key: entry.key,
        sequence: entry.sequence,
        owner: entry.owner,
    }
}

/// The object that `look` says, if the caller may see it.
fn look_at<T>(registry: &Registry<T>, look: Look) -> Result<(u32, &Entry<T>)> {
    let (number, entry) = match look {
        Look::Number(number) => (number, registry.get(number).map_err(refused)?),
        Look::Place(place) | Look::PlaceForAll(place) => {
            registry.at(place as usize).ok_or(Error::Invalid)?
        }
    };
    let is_free = matches!(look, Look::PlaceForAll(_));
    if is_free || as_caller(|caller| entry.owner.permits(caller, 4)) {
        Ok((number, entry))
    } else {
        Err(Error::AccessDenied)
    }
}

/// Gives an object another owner or other permissions.
fn set<T>(registry: &mut Registry<T>, number: u32, settings: Settings) -> Result<()> {
    let entry = registry.get_mut(number).map_err(refused)?;
    if !as_caller(|caller| entry.owner.is_owned_by(caller)) {
        return Err(Error::NotPermitted);
    }
    entry.owner.uid = settings.uid;
    entry.owner.gid = settings.gid;
    entry.owner.mode = settings.mode & 0o777;
    Ok(())
}

/// Fails unless the caller may change or remove the object.
fn check_owner<T>(registry: &Registry<T>, number: u32) -> Result<()> {
    let entry = registry.get(number).map_err(refused)?;
    match as_caller(|caller| entry.owner.is_owned_by(caller)) {
        true => Ok(()),
        false => Err(Error::NotPermitted),
    }
}

/// Fails unless the caller may do what `wanted` says (4 read, 2 change).
fn check_mode<T>(entry: &Entry<T>, wanted: u16) -> Result<()> {
    match as_caller(|caller| entry.owner.permits(caller, wanted)) {
        true => Ok(()),
        false => Err(Error::AccessDenied),
    }
}
