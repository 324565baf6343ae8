//! What programs point to: names, pieces of memory, lengths.

use std::ffi::{c_int, c_void};
use std::io::{IoSlice, IoSliceMut};
use std::net::Ipv4Addr;
use std::ops::{Deref, DerefMut};
use std::{mem, ptr, slice};

use libc::{AF_INET, AF_UNSPEC, iovec, sockaddr, sockaddr_in, socklen_t};
use posix::{Endpoint, Errno, Result};

/// Pieces that one call may have (IOV_MAX).
const PIECES_MAX: usize = 1024;

/// A name that a program passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Name {
    /// An address and a port.
    Inet(Ipv4Addr, u16),
    /// None (AF_UNSPEC).
    Unspecified,
}

/// Reads a name.
///
/// # Safety
/// **Caller**.
///
/// Errors: `INVALID` if it is too short, `BAD_FAMILY`.
pub unsafe fn read_name(at: *const sockaddr, len: socklen_t) -> Result<Name> {
    let len = len as usize;
    if at.is_null() || len < size_of::<libc::sa_family_t>() {
        return Err(Errno::INVALID);
    }
    // SAFETY: **Caller**: it has a family at least.
    let family = c_int::from(unsafe { ptr::read_unaligned(at.cast::<libc::sa_family_t>()) });
    match family {
        AF_UNSPEC => Ok(Name::Unspecified),
        AF_INET if len < size_of::<sockaddr_in>() => Err(Errno::INVALID),
        AF_INET => {
            // SAFETY: **Caller**: it is long enough.
            let name = unsafe { ptr::read_unaligned(at.cast::<sockaddr_in>()) };
            let host = Ipv4Addr::from_bits(u32::from_be(name.sin_addr.s_addr));
            Ok(Name::Inet(host, u16::from_be(name.sin_port)))
        }
        _ => Err(Errno::BAD_FAMILY),
    }
}

/// Writes a name as far as there is room for it; its whole length.
///
/// # Safety
/// **Caller**: `room` bytes at `at` may be written.
pub unsafe fn write_name(at: *mut c_void, room: usize, name: Endpoint) -> socklen_t {
    // SAFETY: zeros are a valid name.
    let mut inet: sockaddr_in = unsafe { mem::zeroed() };
    inet.sin_family = AF_INET as libc::sa_family_t;
    inet.sin_port = name.port.to_be();
    if let std::net::IpAddr::V4(host) = name.addr {
        inet.sin_addr.s_addr = host.to_bits().to_be();
    }
    let shown = size_of::<sockaddr_in>().min(room);
    // SAFETY: **Caller**.
    unsafe { ptr::copy_nonoverlapping((&raw const inet).cast(), at, shown) };
    size_of::<sockaddr_in>() as socklen_t
}

/// Writes a name where `len_at` has the room and gets its length; nothing if `at` is null.
///
/// # Safety
/// **Caller**.
///
/// Errors: `INVALID` for a length that is none.
pub unsafe fn tell_name(at: *mut sockaddr, len_at: *mut socklen_t, name: Endpoint) -> Result<()> {
    if at.is_null() {
        return Ok(());
    }
    if len_at.is_null() {
        return Err(Errno::INVALID);
    }
    // SAFETY: **Caller**.
    unsafe {
        let room = c_int::try_from(*len_at).map_err(|_| Errno::INVALID)?;
        *len_at = write_name(at.cast(), room as usize, name);
    }
    Ok(())
}

/// One piece to read from.
///
/// # Safety
/// **Caller**: the bytes are there until the call ends.
pub unsafe fn piece<'a>(at: *const c_void, len: usize) -> IoSlice<'a> {
    match at.is_null() || len == 0 {
        true => IoSlice::new(&[]),
        // SAFETY: **Caller**.
        false => IoSlice::new(unsafe { slice::from_raw_parts(at.cast(), len) }),
    }
}

/// One piece to write to.
///
/// # Safety
/// **Caller**: the bytes are nobody else's until the call ends.
pub unsafe fn piece_mut<'a>(at: *mut c_void, len: usize) -> IoSliceMut<'a> {
    match at.is_null() || len == 0 {
        true => IoSliceMut::new(&mut []),
        // SAFETY: **Caller**.
        false => IoSliceMut::new(unsafe { slice::from_raw_parts_mut(at.cast(), len) }),
    }
}

/// Bytes to read.
///
/// # Safety
/// **Caller**, as in [`piece`].
pub unsafe fn bytes<'a>(at: *const c_void, len: usize) -> &'a [u8] {
    match at.is_null() || len == 0 {
        true => &[],
        // SAFETY: **Caller**.
        false => unsafe { slice::from_raw_parts(at.cast(), len) },
    }
}

/// Writes bytes; how many.
///
/// # Safety
/// **Caller**: there is room for them, or `at` is null.
pub unsafe fn put(at: *mut c_void, bytes: &[u8]) -> usize {
    if at.is_null() {
        return 0;
    }
    // SAFETY: **Caller**.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), at.cast(), bytes.len()) };
    bytes.len()
}

/// The pieces of a list. One, as most have, needs no memory of its own.
pub enum Pieces<P> {
    One([P; 1]),
    Many(Vec<P>),
}

impl<P> Pieces<P> {
    fn of(list: &[iovec], piece: impl Fn(&iovec) -> P) -> Self {
        match list {
            [one] => Self::One([piece(one)]),
            list => Self::Many(list.iter().map(piece).collect()),
        }
    }
}

impl<P> Deref for Pieces<P> {
    type Target = [P];

    fn deref(&self) -> &[P] {
        match self {
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }
}

impl<P> DerefMut for Pieces<P> {
    fn deref_mut(&mut self) -> &mut [P] {
        match self {
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }
}

/// The pieces of a list to read from.
///
/// # Safety
/// **Caller**, as in [`piece`].
///
/// Errors: `INVALID` for a number of them that cannot be.
pub unsafe fn pieces<'a>(at: *const iovec, count: usize) -> Result<Pieces<IoSlice<'a>>> {
    // SAFETY: **Caller**.
    let list = unsafe { list(at, count) }?;
    // SAFETY: **Caller**.
    let piece = |one: &iovec| unsafe { piece(one.iov_base, one.iov_len) };
    Ok(Pieces::of(list, piece))
}

/// The same to write to.
///
/// # Safety
/// **Caller**, as in [`piece_mut`].
///
/// Errors: `INVALID` for a number of them that cannot be.
pub unsafe fn pieces_mut<'a>(at: *const iovec, count: usize) -> Result<Pieces<IoSliceMut<'a>>> {
    // SAFETY: **Caller**.
    let list = unsafe { list(at, count) }?;
    // SAFETY: **Caller**.
    let piece = |one: &iovec| unsafe { piece_mut(one.iov_base, one.iov_len) };
    Ok(Pieces::of(list, piece))
}

/// # Safety
/// **Caller**.
unsafe fn list<'a>(at: *const iovec, count: usize) -> Result<&'a [iovec]> {
    match count {
        0 => Ok(&[]),
        // SAFETY: **Caller**.
        1..=PIECES_MAX if !at.is_null() => Ok(unsafe { slice::from_raw_parts(at, count) }),
        _ => Err(Errno::INVALID),
    }
}
