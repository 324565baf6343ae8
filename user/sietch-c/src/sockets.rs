//! Sockets, listeners and connections: asked for, and let go.

use std::ffi::c_int;

use libc::sockaddr_in;

use crate::failure::done;
use crate::names::{Connection, Listener, Socket};
use crate::pointers::{Place, exclusive, peer};
use crate::queue::Queue;

/// What a listener's backlog is cut to; Linux' `net.core.somaxconn` is a sixteenth.
const BACKLOG_MAX: usize = 65536;

/// As the header says.
///
/// # Safety
/// **Queue**, **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_bind(queue: *mut Queue, port: u16, socket: *mut Socket) -> c_int {
    // SAFETY: **Queue**, **Caller**.
    let (queue, place) = unsafe { (exclusive(queue), Place::at(socket)) };
    done(queue.and_then(|queue| {
        let place = place?;
        place.write(queue.queue.bind(port)?.into());
        Ok(())
    }))
}

/// As the header says.
///
/// # Safety
/// **Queue**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_unbind(queue: *mut Queue, socket: Socket) -> c_int {
    // SAFETY: **Queue**.
    let queue = unsafe { exclusive(queue) };
    done(queue.and_then(|queue| Ok(queue.queue.unbind(socket.get()?)?)))
}

/// As the header says.
///
/// # Safety
/// **Queue**, **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_listen(
    queue: *mut Queue,
    port: u16,
    backlog: c_int,
    listener: *mut Listener,
) -> c_int {
    // SAFETY: **Queue**, **Caller**.
    let (queue, place) = unsafe { (exclusive(queue), Place::at(listener)) };
    let backlog = usize::try_from(backlog).unwrap_or(0).min(BACKLOG_MAX);
    done(queue.and_then(|queue| {
        let place = place?;
        place.write(queue.queue.listen(port, backlog)?.into());
        Ok(())
    }))
}

/// As the header says.
///
/// # Safety
/// **Queue**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_stop_listening(queue: *mut Queue, listener: Listener) -> c_int {
    // SAFETY: **Queue**.
    let queue = unsafe { exclusive(queue) };
    done(queue.and_then(|queue| Ok(queue.queue.stop_listening(listener.get()?)?)))
}

/// As the header says.
///
/// # Safety
/// **Queue**, **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_connect(
    queue: *mut Queue,
    to: *const sockaddr_in,
    connection: *mut Connection,
) -> c_int {
    // SAFETY: **Queue**, **Caller**.
    let (queue, to, place) = unsafe { (exclusive(queue), peer(to), Place::at(connection)) };
    done(queue.and_then(|queue| {
        let ((host, port), place) = (to?, place?);
        place.write(queue.queue.connect(host, port)?.into());
        Ok(())
    }))
}

/// As the header says.
///
/// # Safety
/// **Queue**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_close(queue: *mut Queue, connection: Connection) -> c_int {
    // SAFETY: **Queue**.
    let queue = unsafe { exclusive(queue) };
    done(queue.and_then(|queue| Ok(queue.queue.close(connection.get()?)?)))
}

/// As the header says.
#[unsafe(no_mangle)]
pub extern "C" fn sietch_connection_index(connection: Connection) -> usize {
    connection.get().map_or(0, sietch_io::Connection::index)
}
