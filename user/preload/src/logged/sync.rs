//! `fsync(2)` and its kin: threads that sync at once share an entry and a flush.
//!
//! Who finds nobody out takes all that was written by then, goes out with it and comes back. Who finds somebody out waits for that, and
//! looks whether its own bytes were among them; if not, it is the next to go.
//!
//! A thread that syncs again and again, and no other does, looks for the device's end before it sleeps, where that comes without the kernel
//! (`sietch_io::storage`, `looks`). Where several do, who sleeps lets the others write what the next one brings out.

use std::ffi::c_int;
use std::ptr;
use std::sync::MutexGuard;

use sietch_io::storage::{LogFiles, Look, Out};

use super::descriptors::is_logged;
use super::store::{self, BACK, Logged, errno_of};
use super::{Result, answer};
use crate::next;

fn sync(number: c_int) -> Result<c_int> {
    let mut logged = store::lock_beside();
    let is_alone = logged.is_alone();
    loop {
        let is_out = logged.is_out;
        let (files, description) = logged.described(number)?;
        let file = description.file;
        if files.is_synced(file).map_err(|why| errno_of(&why))? {
            return Ok(0);
        }
        logged = match is_out {
            true => store::wait(logged),
            false => {
                let out = files.sync_out(is_alone).map_err(|why| errno_of(&why))?;
                go_out(logged, number, out)?
            }
        };
    }
}

/// Waits for the device without the lock.
fn go_out(
    mut logged: MutexGuard<'static, Logged>,
    number: c_int,
    out: Out,
) -> Result<MutexGuard<'static, Logged>> {
    logged.is_out = true;
    let (logged, out) = match out {
        Out::Look => look(logged),
        out => (logged, out),
    };
    drop(logged);
    let done = match out {
        Out::Work(work) => work.carry_out(),
        Out::Bell(bell) => {
            wait_for(bell);
            Vec::new()
        }
        Out::Over | Out::Look => Vec::new(),
    };
    let mut logged = store::lock_beside();
    logged.is_out = false;
    BACK.notify_all();
    // The descriptor may be closed by now, the files are there.
    let back = logged
        .files()
        .map(|files: &mut LogFiles| files.come_back(done))?;
    back.map_err(|why| errno_of(&why))?;
    logged.described(number)?;
    Ok(logged)
}

/// Looks for a while whether the device has done it, each time with the lock and without it in between; what is to be waited for then.
fn look(mut logged: MutexGuard<'static, Logged>) -> (MutexGuard<'static, Logged>, Out) {
    let mut look = Look::begin();
    loop {
        let Ok(files) = logged.files() else {
            return (logged, Out::Over);
        };
        if files.look() {
            return (logged, Out::Over);
        }
        if look.is_over() {
            let out = files.sleep_out();
            return (logged, out);
        }
        drop(logged);
        logged = store::lock_beside();
    }
}

/// Until it can be read, a signal comes, or it is time to see whether the device is there still; then it is asked for again.
fn wait_for(bell: c_int) {
    let patience = libc::timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    let mut asked = libc::pollfd {
        fd: bell,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: what is passed outlives the call.
    unsafe {
        next::ppoll.get()(&mut asked, 1, &patience, ptr::null());
    }
}

/// `fsync(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn fsync(number: c_int) -> c_int {
    match is_logged(number) {
        true => answer(sync(number)),
        // SAFETY: no memory is passed.
        false => unsafe { next::fsync.get()(number) },
    }
}

/// `fdatasync(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn fdatasync(number: c_int) -> c_int {
    match is_logged(number) {
        true => answer(sync(number)),
        // SAFETY: no memory is passed.
        false => unsafe { next::fdatasync.get()(number) },
    }
}
