//! What leaves: data that is given away, and bytes that are copied.

use std::ffi::{c_int, c_void};

use libc::sockaddr_in;
use sietch_io::Chain;

use crate::data::Data;
use crate::failure::{Failure, Result, count, done};
use crate::names::{Connection, Socket};
use crate::pointers::{Place, bytes, endpoint, exclusive};
use crate::queue::Queue;

/// No datagram is larger.
const DATAGRAM_BYTES_MAX: usize = 65535;

/// As the header says.
///
/// # Safety
/// **Queue**, **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_send_to(
    queue: *mut Queue,
    socket: Socket,
    to: *const sockaddr_in,
    data: Data,
) -> c_int {
    // SAFETY: **Queue**, **Caller**.
    let (queue, to) = unsafe { (exclusive(queue), endpoint(to)) };
    done(queue.and_then(|queue| {
        let data = queue.table.take(data.id)?;
        Ok(queue.queue.send_to(socket.get()?, to?, data)?)
    }))
}

/// As the header says.
///
/// # Safety
/// **Queue**, **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_send_bytes_to(
    queue: *mut Queue,
    socket: Socket,
    to: *const sockaddr_in,
    from: *const c_void,
    len: usize,
) -> c_int {
    // SAFETY: **Queue**, **Caller**.
    let (queue, to, bytes) = unsafe { (exclusive(queue), endpoint(to), bytes(from, len)) };
    done(queue.and_then(|queue| {
        let (socket, to, bytes) = (socket.get()?, to?, bytes?);
        match bytes.len() {
            0..=DATAGRAM_BYTES_MAX => Ok(queue.queue.send_bytes_to(socket, to, bytes)?),
            _ => Err(Failure::TOO_LONG),
        }
    }))
}

/// As the header says.
///
/// # Safety
/// **Queue**, **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_send(
    queue: *mut Queue,
    connection: Connection,
    data: Data,
    left: *mut usize,
) -> isize {
    // SAFETY: **Queue**, **Caller**.
    let (queue, place) = unsafe { (exclusive(queue), Place::at(left)) };
    count(queue.and_then(|queue| {
        let (sent, left) = queue.send(connection, data)?;
        if let Ok(place) = place {
            place.write(left);
        }
        Ok(sent)
    }))
}

impl Queue {
    /// How many bytes were sent, and how many are left.
    fn send(&mut self, connection: Connection, data: Data) -> Result<(usize, usize)> {
        let connection = connection.get()?;
        let mut none = Chain::new();
        let chain = match data {
            Data::NONE => &mut none,
            data => self.table.data(data.id)?,
        };
        let sent = self.queue.send(connection, chain)?;
        let left = chain.len();
        if left == 0 {
            self.table.take(data.id)?;
        }
        Ok((sent, left))
    }
}

/// As the header says.
///
/// # Safety
/// **Queue**, **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_send_bytes(
    queue: *mut Queue,
    connection: Connection,
    from: *const c_void,
    len: usize,
) -> isize {
    // SAFETY: **Queue**, **Caller**.
    let (queue, bytes) = unsafe { (exclusive(queue), bytes(from, len)) };
    count(queue.and_then(|queue| {
        let (connection, bytes) = (connection.get()?, bytes?);
        Ok(queue.queue.send_bytes(connection, bytes)?)
    }))
}
