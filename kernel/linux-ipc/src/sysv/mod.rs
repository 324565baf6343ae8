//! System V's interprocess communication: what its three families have in common.

pub mod message;
pub mod semaphore;
pub mod shared;

use base::VirtAddr;
use ipc::sysv::{Common, GetRequest, Look, Settings};
use mm::user;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use linux_abi::call::{Call, Outcome};
use linux_abi::errno::Errno;

/// Flags of `*get` and of operations (<sys/ipc.h>).
const IPC_CREAT: u32 = 0o1000;
const IPC_EXCL: u32 = 0o2000;
pub(super) const IPC_NOWAIT: u32 = 0o4000;
const MODE: u32 = 0o777;

/// Commands that all `*ctl` have.
pub(super) const IPC_RMID: u32 = 0;
pub(super) const IPC_SET: u32 = 1;
pub(super) const IPC_STAT: u32 = 2;
pub(super) const IPC_INFO: u32 = 3;
/// Programs of other machines say with it that structures are of today.
const IPC_64: u32 = 0x100;

/// `struct ipc64_perm`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Permissions {
    key: i32,
    uid: u32,
    gid: u32,
    creator_uid: u32,
    creator_gid: u32,
    mode: u32,
    sequence: u16,
    _pad: [u16; 3],
    _unused: [u64; 2],
}

impl Permissions {
    pub(super) fn of(common: &Common, flags: u32) -> Self {
        let owner = common.owner;
        Self {
            key: common.key,
            uid: owner.uid,
            gid: owner.gid,
            creator_uid: owner.creator_uid,
            creator_gid: owner.creator_gid,
            mode: u32::from(owner.mode) | flags,
            sequence: common.sequence as u16,
            _pad: [0; 3],
            _unused: [0; 2],
        }
    }

    pub(super) fn settings(&self) -> Settings {
        Settings {
            uid: self.uid,
            gid: self.gid,
            mode: (self.mode & MODE) as u16,
        }
    }
}

const _: () = assert!(size_of::<Permissions>() == 48, "as <linux/ipcbuf.h> has it");

/// What the key and flags of `*get` say.
pub(super) fn get_request(key: i32, flags: u32) -> GetRequest {
    GetRequest {
        key,
        create: flags & IPC_CREAT != 0,
        exclusive: flags & IPC_EXCL != 0,
        mode: (flags & MODE) as u16,
    }
}

/// The command of `*ctl` in argument `index`.
pub(super) fn command(call: &Call<'_>, index: usize) -> u32 {
    call.uint(index) & !IPC_64
}

/// The number in argument `index`; negative ones are nobody's.
pub(super) fn number(call: &Call<'_>, index: usize) -> Result<u32, Errno> {
    u32::try_from(call.int(index)).map_err(|_| Errno::EINVAL)
}

/// Which object `*ctl` is to show: `by_place` and `for_all` are its commands for tools.
pub(super) fn look(number: u32, command: u32, by_place: u32, for_all: u32) -> Look {
    if command == by_place {
        Look::Place(number)
    } else if command == for_all {
        Look::PlaceForAll(number)
    } else {
        Look::Number(number)
    }
}

/// Stores what is to be shown; commands for tools return the object's number.
pub(super) fn show<T: IntoBytes + Immutable>(
    to: VirtAddr,
    shown: T,
    common: &Common,
    look: Look,
) -> Outcome {
    user::write(to, shown)?;
    Ok(match look {
        Look::Number(_) => 0,
        Look::Place(_) | Look::PlaceForAll(_) => common.number as usize,
    })
}
