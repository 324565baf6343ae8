//! A queue: opened, polled, waited for, closed.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;
use std::time::Duration;

use crate::config::{Config, Refused};
use crate::event::Event;
use crate::failure::{Failure, Result, done, number};
use crate::pointers::{Place, exclusive, shared};
use crate::table::Table;

/// `struct sietch_queue`.
pub struct Queue {
    /// What the program has; before the packet memory goes.
    pub(crate) table: Table,
    pub(crate) queue: sietch_io::Queue,
}

thread_local! {
    static OPEN_ERROR: RefCell<CString> = RefCell::default();
}

/// As the header says.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_queue_open(config: *const Config, queue: *mut *mut Queue) -> c_int {
    // SAFETY: **Caller**.
    let (config, place) = unsafe { (shared(config), Place::at(queue)) };
    let opened = match (config, place) {
        (Ok(config), Ok(place)) => {
            place.write(ptr::null_mut());
            // SAFETY: **Caller**.
            unsafe { open(config) }.map(|queue| place.write(Box::into_raw(queue)))
        }
        _ => Err((Failure::INVALID, "a pointer is NULL".into())),
    };
    done(opened.map_err(|(failure, why)| {
        tell(why);
        failure
    }))
}

/// # Safety
/// **Caller**: of the texts.
unsafe fn open(config: &Config) -> std::result::Result<Box<Queue>, Refused> {
    // SAFETY: **Caller**.
    let config = unsafe { config.read() }?;
    match sietch_io::Queue::open(&config) {
        Ok(queue) => Ok(Box::new(Queue {
            table: Table::default(),
            queue,
        })),
        Err(error) => Err((Failure::from(&error), format!("{}: {error}", config.link))),
    }
}

fn tell(why: String) {
    let why = CString::new(why).unwrap_or_default();
    // A thread that is ending has nobody to read it.
    let _ = OPEN_ERROR.try_with(|slot| slot.replace(why));
}

/// As the header says.
#[unsafe(no_mangle)]
pub extern "C" fn sietch_open_error() -> *const c_char {
    let text = OPEN_ERROR.try_with(|slot| slot.borrow().as_ptr());
    text.unwrap_or(c"".as_ptr())
}

/// As the header says.
///
/// # Safety
/// **Queue**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_queue_close(queue: *mut Queue) {
    if !queue.is_null() {
        // SAFETY: **Queue**: it came from `Box::into_raw`, and is not used again.
        drop(unsafe { Box::from_raw(queue) });
    }
}

/// As the header says.
///
/// # Safety
/// **Queue**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_poll(queue: *mut Queue, timeout_ms: c_int) -> c_int {
    // SAFETY: **Queue**.
    let queue = unsafe { exclusive(queue) };
    let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
    done(queue.and_then(|queue| Ok(queue.queue.poll(timeout)?)))
}

/// As the header says.
///
/// # Safety
/// **Queue**, **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_receive(queue: *mut Queue, event: *mut Event) -> c_int {
    // SAFETY: **Queue**, **Caller**.
    let (queue, event) = unsafe { (exclusive(queue), Place::at(event)) };
    number(queue.and_then(|queue| queue.receive(event?)))
}

impl Queue {
    #[inline]
    fn receive(&mut self, place: Place<Event>) -> Result<c_int> {
        if !self.table.has_room() {
            return Err(Failure::NO_BUFFERS);
        }
        let Some(event) = self.queue.receive() else {
            return Ok(0);
        };
        place.write(Event::new(event, &mut self.table)?);
        Ok(1)
    }
}

/// As the header says.
///
/// # Safety
/// **Queue**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_queue_fd(queue: *mut Queue) -> c_int {
    // SAFETY: **Queue**.
    let queue = unsafe { exclusive(queue) };
    number(queue.map(|queue| queue.queue.as_fd().as_raw_fd()))
}

/// As the header says.
///
/// # Safety
/// **Queue**, **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_arm(queue: *mut Queue, timeout_ms: *mut c_int) -> c_int {
    // SAFETY: **Queue**, **Caller**.
    let (queue, place) = unsafe { (exclusive(queue), Place::at(timeout_ms)) };
    done(queue.and_then(|queue| {
        let place = place?;
        let most = queue.queue.arm()?;
        place.write(most.map_or(-1, milliseconds));
        Ok(())
    }))
}

/// Not less, or the wait would end before there is something to do.
fn milliseconds(of: Duration) -> c_int {
    let up = of.as_nanos().div_ceil(1_000_000);
    c_int::try_from(up).unwrap_or(c_int::MAX)
}
