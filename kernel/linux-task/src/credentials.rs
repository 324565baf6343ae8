//! Users, groups and capabilities (credentials(7), capabilities(7)).

use alloc::sync::Arc;
use alloc::vec::Vec;

use cred::{CAPABILITIES_ALL, Capability, Credentials, IdSet};
use linux_raw_sys::general::{
    __NR_capget, __NR_capset, __NR_getegid, __NR_geteuid, __NR_getgid, __NR_getgroups,
    __NR_getresgid, __NR_getresuid, __NR_getuid, __NR_setfsgid, __NR_setfsuid, __NR_setgid,
    __NR_setgroups, __NR_setregid, __NR_setresgid, __NR_setresuid, __NR_setreuid, __NR_setuid,
};
use mach::mem::fallible;
use mm::user;

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_getuid,
        name: "getuid",
        args: &[],
        handler: |c| tell(&c, |w| w.user.real),
    },
    Entry {
        number: __NR_geteuid,
        name: "geteuid",
        args: &[],
        handler: |c| tell(&c, |w| w.user.effective),
    },
    Entry {
        number: __NR_getgid,
        name: "getgid",
        args: &[],
        handler: |c| tell(&c, |w| w.group.real),
    },
    Entry {
        number: __NR_getegid,
        name: "getegid",
        args: &[],
        handler: |c| tell(&c, |w| w.group.effective),
    },
    Entry {
        number: __NR_getresuid,
        name: "getresuid",
        args: &[Arg::Address, Arg::Address, Arg::Address],
        handler: |c| tell_three(&c, |w| w.user),
    },
    Entry {
        number: __NR_getresgid,
        name: "getresgid",
        args: &[Arg::Address, Arg::Address, Arg::Address],
        handler: |c| tell_three(&c, |w| w.group),
    },
    Entry {
        number: __NR_setuid,
        name: "setuid",
        args: &[Arg::Int],
        handler: |c| set(&c, USER),
    },
    Entry {
        number: __NR_setgid,
        name: "setgid",
        args: &[Arg::Int],
        handler: |c| set(&c, GROUP),
    },
    Entry {
        number: __NR_setreuid,
        name: "setreuid",
        args: &[Arg::Int, Arg::Int],
        handler: |c| set_two(&c, USER),
    },
    Entry {
        number: __NR_setregid,
        name: "setregid",
        args: &[Arg::Int, Arg::Int],
        handler: |c| set_two(&c, GROUP),
    },
    Entry {
        number: __NR_setresuid,
        name: "setresuid",
        args: &[Arg::Int, Arg::Int, Arg::Int],
        handler: |c| set_three(&c, USER),
    },
    Entry {
        number: __NR_setresgid,
        name: "setresgid",
        args: &[Arg::Int, Arg::Int, Arg::Int],
        handler: |c| set_three(&c, GROUP),
    },
    Entry {
        number: __NR_setfsuid,
        name: "setfsuid",
        args: &[Arg::Int],
        handler: |c| set_fs(&c, USER),
    },
    Entry {
        number: __NR_setfsgid,
        name: "setfsgid",
        args: &[Arg::Int],
        handler: |c| set_fs(&c, GROUP),
    },
    Entry {
        number: __NR_getgroups,
        name: "getgroups",
        args: &[Arg::Int, Arg::Address],
        handler: getgroups,
    },
    Entry {
        number: __NR_setgroups,
        name: "setgroups",
        args: &[Arg::Int, Arg::Address],
        handler: setgroups,
    },
    Entry {
        number: __NR_capget,
        name: "capget",
        args: &[Arg::Address, Arg::Address],
        handler: capget,
    },
    Entry {
        number: __NR_capset,
        name: "capset",
        args: &[Arg::Address, Arg::Address],
        handler: capset,
    },
];

/// Groups that a thread may have besides its own (/proc/sys/kernel/ngroups_max).
const GROUPS_MAX: usize = 65_536;
/// "Leave it as it is."
const KEEP: u32 = u32::MAX;

/// Users or groups: the same rules, other fields.
#[derive(Clone, Copy)]
struct Kind {
    privilege: Capability,
    get: fn(&Credentials) -> IdSet,
    put: fn(&mut Credentials, IdSet),
    put_fs: fn(&mut Credentials, u32),
}

const USER: Kind = Kind {
    privilege: Capability::Setuid,
    get: |who| who.user,
    put: Credentials::set_user,
    put_fs: Credentials::set_fs_user,
};
const GROUP: Kind = Kind {
    privilege: Capability::Setgid,
    get: |who| who.group,
    put: |who, ids| who.group = ids,
    put_fs: |who, id| who.group.fs = id,
};

fn tell(call: &Call<'_>, look: fn(&Credentials) -> u32) -> Outcome {
    Ok(call.thread.credentials.with(|who| look(who)) as usize)
}

fn tell_three(call: &Call<'_>, look: fn(&Credentials) -> IdSet) -> Outcome {
    let ids = call.thread.credentials.with(|who| look(who));
    for (index, id) in [ids.real, ids.effective, ids.saved].into_iter().enumerate() {
        user::write(call.addr(index), id)?;
    }
    Ok(0)
}

fn replace(call: &Call<'_>, kind: Kind, ids: IdSet) {
    let mut who = Credentials::clone(&call.thread.credentials.get());
    (kind.put)(&mut who, ids);
    call.thread.take_credentials(who);
}

/// With the privilege all three change; without it only the effective one, to one that
/// the thread holds.
fn set(call: &Call<'_>, kind: Kind) -> Outcome {
    let id = call.uint(0);
    if id == KEEP {
        return Err(Errno::EINVAL);
    }
    let who = call.thread.credentials.get();
    let old = (kind.get)(&who);
    let new = if who.has(kind.privilege) {
        IdSet {
            real: id,
            effective: id,
            saved: id,
            fs: id,
        }
    } else if old.real == id || old.saved == id {
        IdSet {
            effective: id,
            fs: id,
            ..old
        }
    } else {
        return Err(Errno::EPERM);
    };
    replace(call, kind, new);
    Ok(0)
}

fn or_keep(wanted: u32, old: u32) -> u32 {
    if wanted == KEEP { old } else { wanted }
}

fn set_two(call: &Call<'_>, kind: Kind) -> Outcome {
    let who = call.thread.credentials.get();
    let old = (kind.get)(&who);
    let (real, effective) = (call.uint(0), call.uint(1));
    let allowed = (real == KEEP || [old.real, old.effective].contains(&real))
        && (effective == KEEP || old.holds(effective));
    if !allowed && !who.has(kind.privilege) {
        return Err(Errno::EPERM);
    }
    let new_effective = or_keep(effective, old.effective);
    let follows = real != KEEP || (effective != KEEP && effective != old.real);
    let saved = if follows { new_effective } else { old.saved };
    let real = or_keep(real, old.real);
    replace(
        call,
        kind,
        IdSet {
            real,
            effective: new_effective,
            saved,
            fs: new_effective,
        },
    );
    Ok(0)
}

fn set_three(call: &Call<'_>, kind: Kind) -> Outcome {
    let who = call.thread.credentials.get();
    let old = (kind.get)(&who);
    let wanted = [call.uint(0), call.uint(1), call.uint(2)];
    let allowed = wanted.iter().all(|&id| id == KEEP || old.holds(id));
    if !allowed && !who.has(kind.privilege) {
        return Err(Errno::EPERM);
    }
    let effective = or_keep(wanted[1], old.effective);
    let real = or_keep(wanted[0], old.real);
    let saved = or_keep(wanted[2], old.saved);
    replace(
        call,
        kind,
        IdSet {
            real,
            effective,
            saved,
            fs: effective,
        },
    );
    Ok(0)
}

/// Tells the former number in any case; that is all the error report there is.
fn set_fs(call: &Call<'_>, kind: Kind) -> Outcome {
    let who = call.thread.credentials.get();
    let old = (kind.get)(&who);
    let id = call.uint(0);
    let allowed = old.holds(id) || old.fs == id || who.has(kind.privilege);
    if allowed && id != KEEP {
        let mut new = Credentials::clone(&who);
        (kind.put_fs)(&mut new, id);
        call.thread.take_credentials(new);
    }
    Ok(old.fs as usize)
}

fn getgroups(call: Call<'_>) -> Outcome {
    let groups = call.thread.credentials.with(|who| who.groups.clone());
    let room = usize::try_from(call.int(0)).map_err(|_| Errno::EINVAL)?;
    if room == 0 {
        return Ok(groups.len());
    }
    if room < groups.len() {
        return Err(Errno::EINVAL);
    }
    for (index, &group) in groups.iter().enumerate() {
        user::write(call.addr(1) + index as u64 * 4, group)?;
    }
    Ok(groups.len())
}

fn setgroups(call: Call<'_>) -> Outcome {
    let old = call.thread.credentials.get();
    old.require(Capability::Setgid)?;
    let count = call.uint(0) as usize;
    if count > GROUPS_MAX {
        return Err(Errno::EINVAL);
    }
    let mut groups: Vec<u32> = fallible::vec(count).map_err(|_| Errno::ENOMEM)?;
    for index in 0..count as u64 {
        groups.push(user::read(call.addr(1) + index * 4)?);
    }
    let who = Credentials {
        groups: shared(&call, groups)?,
        ..Credentials::clone(&old)
    };
    call.thread.take_credentials(who);
    Ok(0)
}

/// The groups, those of the process' first thread where they are the same: libraries give all
/// threads of a process the same ones.
fn shared(call: &Call<'_>, groups: Vec<u32>) -> Result<Arc<Vec<u32>>, Errno> {
    let first = call.thread.process.first_thread();
    let known = first.map(|thread| thread.credentials.with(|who| who.groups.clone()));
    match known.filter(|known| **known == groups) {
        Some(known) => Ok(known),
        None => fallible::arc(groups).map_err(|_| Errno::ENOMEM),
    }
}

const CAPABILITY_VERSION_1: u32 = 0x1998_0330;
const CAPABILITY_VERSION_2: u32 = 0x2007_1026;
const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// `struct __user_cap_header_struct`: version and thread. The number of 32-bit halves of
/// each set, and the thread; an unknown version is told the one we speak.
fn cap_header(call: &Call<'_>) -> Result<(usize, u32), Errno> {
    let [version, thread]: [u32; 2] = user::read(call.addr(0))?;
    match version {
        CAPABILITY_VERSION_1 => Ok((1, thread)),
        CAPABILITY_VERSION_2 | CAPABILITY_VERSION_3 => Ok((2, thread)),
        _ => {
            user::write(call.addr(0), CAPABILITY_VERSION_3)?;
            Err(Errno::EINVAL)
        }
    }
}

/// `struct __user_cap_data_struct` for each half: effective, permitted, inheritable.
fn capget(call: Call<'_>) -> Outcome {
    let header = cap_header(&call);
    let Some(data) = call.optional_addr(1) else {
        return if header == Err(Errno::EINVAL) {
            Ok(0)
        } else {
            header.map(|_| 0)
        };
    };
    let (halves, thread) = header?;
    let who = match thread {
        0 => call.thread.credentials.get(),
        id if i32::try_from(id).is_err() => return Err(Errno::EINVAL),
        id => task::find_thread(id).ok_or(Errno::ESRCH)?.credentials.get(),
    };
    let caps = who.capabilities;
    for half in 0..halves {
        let part = |set: u64| (set >> (32 * half)) as u32;
        let words = [
            part(caps.effective),
            part(caps.permitted),
            part(caps.inheritable),
        ];
        user::write(data + half as u64 * 12, words)?;
    }
    Ok(0)
}

fn capset(call: Call<'_>) -> Outcome {
    let (halves, thread) = cap_header(&call)?;
    if thread != 0 && thread != call.thread.id() {
        return Err(Errno::EPERM);
    }
    let mut sets = [0u64; 3];
    for half in 0..halves {
        let words: [u32; 3] = user::read(call.addr(1) + half as u64 * 12)?;
        for (set, word) in sets.iter_mut().zip(words) {
            *set |= u64::from(word) << (32 * half);
        }
    }
    let [effective, permitted, inheritable] = sets.map(|set| set & CAPABILITIES_ALL);
    let mut who = Credentials::clone(&call.thread.credentials.get());
    let adds_bounded = who.has(Capability::Setpcap);
    let caps = &mut who.capabilities;
    let raises = permitted & !caps.permitted != 0 || effective & !permitted != 0;
    let own = if adds_bounded {
        CAPABILITIES_ALL
    } else {
        caps.permitted
    };
    let inheritable_max = (caps.inheritable | own) & (caps.inheritable | caps.bounding);
    let inherits_more = inheritable & !inheritable_max != 0;
    if raises || inherits_more {
        return Err(Errno::EPERM);
    }
    (caps.effective, caps.permitted, caps.inheritable) = (effective, permitted, inheritable);
    caps.ambient &= permitted & inheritable;
    call.thread.take_credentials(who);
    Ok(0)
}
