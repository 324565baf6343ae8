//! `struct sietch_data`: looked at, copied, written, let go.

use std::ffi::{c_int, c_void};
use std::ptr;

use libc::iovec;
use sietch_io::Chain;

use crate::failure::{Failure, Result, count, done};
use crate::pointers::{BYTES_MAX, Place, exclusive};
use crate::queue::Queue;
use crate::table::{Held, Table};

/// As the header has it.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data {
    /// Its name in the queue's table; zero has no bytes.
    pub id: u64,
}

impl Data {
    /// No bytes.
    pub const NONE: Self = Self { id: 0 };

    #[inline]
    pub(crate) fn add(table: &mut Table, data: Chain) -> Result<Self> {
        Ok(Self {
            id: table.add_data(data)?,
        })
    }

    /// Its bytes, one slice a piece.
    fn slices(self, table: &mut Table) -> Result<impl Iterator<Item = &[u8]>> {
        let (chain, buffer) = match (self, self != Self::NONE) {
            (_, false) => (None, None),
            (data, true) => match table.get(data.id)? {
                Held::Data(chain) => (Some(&*chain), None),
                Held::Buffer(buffer) => (None, Some(buffer.bytes())),
                Held::Nothing(_) => return Err(Failure::BAD_NAME),
            },
        };
        let buffer = buffer.filter(|bytes| !bytes.is_empty());
        Ok(chain.into_iter().flat_map(Chain::slices).chain(buffer))
    }
}

/// As the header says.
///
/// # Safety
/// **Queue**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_done(queue: *mut Queue, data: Data) -> c_int {
    // SAFETY: **Queue**.
    let queue = unsafe { exclusive(queue) };
    done(queue.and_then(|queue| queue.table.take(data.id).map(drop)))
}

/// As the header says.
///
/// # Safety
/// **Queue**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_data_len(queue: *mut Queue, data: Data) -> isize {
    // SAFETY: **Queue**.
    let queue = unsafe { exclusive(queue) };
    count(queue.and_then(|queue| Ok(data.slices(&mut queue.table)?.map(<[u8]>::len).sum())))
}

/// As the header says.
///
/// # Safety
/// **Queue**, **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_data_parts(
    queue: *mut Queue,
    data: Data,
    parts: *mut iovec,
    max: usize,
) -> isize {
    // SAFETY: **Queue**.
    let queue = unsafe { exclusive(queue) };
    count(queue.and_then(|queue| {
        if parts.is_null() && max != 0 {
            return Err(Failure::INVALID);
        }
        let mut all = 0;
        for slice in data.slices(&mut queue.table)? {
            if all < max {
                // SAFETY: **Caller**: there is room for `max`.
                unsafe { ptr::write(parts.add(all), part(slice.as_ptr(), slice.len())) };
            }
            all += 1;
        }
        Ok(all)
    }))
}

fn part(at: *const u8, len: usize) -> iovec {
    iovec {
        iov_base: at.cast_mut().cast(),
        iov_len: len,
    }
}

/// As the header says.
///
/// # Safety
/// **Queue**, **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_data_copy(
    queue: *mut Queue,
    data: Data,
    offset: usize,
    to: *mut c_void,
    len: usize,
) -> isize {
    // SAFETY: **Queue**.
    let queue = unsafe { exclusive(queue) };
    count(queue.and_then(|queue| {
        if len > BYTES_MAX || to.is_null() && len != 0 {
            return Err(Failure::INVALID);
        }
        let (mut skip, mut copied) = (offset, 0);
        for slice in data.slices(&mut queue.table)? {
            let here = slice.get(skip..).unwrap_or_default();
            skip = skip.saturating_sub(slice.len());
            let fits = here.len().min(len - copied);
            // SAFETY: **Caller**: there is room for `len`, which `copied + fits` does not exceed; packet memory
            // is nobody's to write to but through a buffer's space.
            unsafe { ptr::copy(here.as_ptr(), to.cast::<u8>().add(copied), fits) };
            copied += fits;
        }
        Ok(copied)
    }))
}

/// As the header says.
///
/// # Safety
/// **Queue**, **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_buffer(queue: *mut Queue, buffer: *mut Data) -> c_int {
    // SAFETY: **Queue**, **Caller**.
    let (queue, place) = unsafe { (exclusive(queue), Place::at(buffer)) };
    done(queue.and_then(|queue| {
        let place = place?;
        let buffer = queue.queue.buffer().ok_or(Failure::NO_BUFFERS)?;
        let id = queue.table.add(Held::Buffer(buffer))?;
        place.write(Data { id });
        Ok(())
    }))
}

/// As the header says.
///
/// # Safety
/// **Queue**, **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_buffer_space(
    queue: *mut Queue,
    buffer: Data,
    space: *mut iovec,
) -> c_int {
    // SAFETY: **Queue**, **Caller**.
    let (queue, place) = unsafe { (exclusive(queue), Place::at(space)) };
    done(queue.and_then(|queue| {
        let place = place?;
        let Held::Buffer(buffer) = queue.table.get(buffer.id)? else {
            return Err(Failure::INVALID);
        };
        let (held, room) = (buffer.len(), buffer.tailroom());
        let space = buffer.extend(room).ok_or(Failure::NO_BUFFERS)?;
        place.write(part(space.as_mut_ptr(), room));
        buffer.shrink_to(held);
        Ok(())
    }))
}

/// As the header says.
///
/// # Safety
/// **Queue**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_buffer_commit(
    queue: *mut Queue,
    buffer: Data,
    len: usize,
) -> c_int {
    // SAFETY: **Queue**.
    let queue = unsafe { exclusive(queue) };
    done(queue.and_then(|queue| {
        let Held::Buffer(buffer) = queue.table.get(buffer.id)? else {
            return Err(Failure::INVALID);
        };
        buffer.extend(len).map(drop).ok_or(Failure::TOO_LONG)
    }))
}
