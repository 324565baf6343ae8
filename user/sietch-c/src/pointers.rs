//! What programs point to.

use std::ffi::{CStr, c_char, c_void};
use std::net::{IpAddr, Ipv4Addr};
use std::{ptr, slice};

use libc::{AF_INET, in_addr, sockaddr_in};
use sietch_io::Endpoint;

use crate::failure::{Failure, Result};

/// A struct of the program's that is read or written in place.
///
/// # Safety
/// **Caller**, for as long as the reference lives.
#[inline]
pub unsafe fn exclusive<'a, T>(at: *mut T) -> Result<&'a mut T> {
    // SAFETY: **Caller**.
    unsafe { at.as_mut() }.ok_or(Failure::INVALID)
}

/// A struct that is read.
///
/// # Safety
/// **Caller**, for as long as the reference lives.
#[inline]
pub unsafe fn shared<'a, T>(at: *const T) -> Result<&'a T> {
    // SAFETY: **Caller**.
    unsafe { at.as_ref() }.ok_or(Failure::INVALID)
}

/// Where a result goes, which need not be initialised.
#[derive(Clone, Copy)]
pub struct Place<T>(*mut T);

impl<T> Place<T> {
    /// # Safety
    /// **Caller**, until it is written.
    #[inline]
    pub unsafe fn at(at: *mut T) -> Result<Self> {
        match at.is_null() {
            true => Err(Failure::INVALID),
            false => Ok(Self(at)),
        }
    }

    #[inline]
    pub fn write(self, value: T) {
        // SAFETY: **Caller**: not NULL (`at`), and there is room.
        unsafe { ptr::write(self.0, value) }
    }
}

/// So many bytes that are read.
///
/// # Safety
/// **Caller**, for as long as the slice lives.
#[inline]
pub unsafe fn bytes<'a>(at: *const c_void, len: usize) -> Result<&'a [u8]> {
    match (at.is_null(), len) {
        (_, 0) => Ok(&[]),
        (false, 1..=BYTES_MAX) => {
            // SAFETY: **Caller**: not NULL, and so many bytes are there.
            Ok(unsafe { slice::from_raw_parts(at.cast(), len) })
        }
        _ => Err(Failure::INVALID),
    }
}

/// No memory is larger.
pub const BYTES_MAX: usize = isize::MAX as usize;

/// A text; `None` for NULL.
///
/// # Safety
/// **Caller**, for as long as the text lives.
pub unsafe fn text<'a>(at: *const c_char) -> Result<Option<&'a str>> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: **Caller**: it ends with a zero.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str().map(Some).map_err(|_| Failure::INVALID)
}

/// A peer's address and port.
///
/// # Safety
/// **Caller**.
#[inline]
pub unsafe fn peer(at: *const sockaddr_in) -> Result<(Ipv4Addr, u16)> {
    // SAFETY: **Caller**.
    let name = unsafe { shared(at) }?;
    match name.sin_family {
        INET => {
            let host = Ipv4Addr::from_bits(u32::from_be(name.sin_addr.s_addr));
            Ok((host, u16::from_be(name.sin_port)))
        }
        _ => Err(Failure::BAD_FAMILY),
    }
}

/// The same as the stack has it.
///
/// # Safety
/// **Caller**.
#[inline]
pub unsafe fn endpoint(at: *const sockaddr_in) -> Result<Endpoint> {
    // SAFETY: **Caller**.
    unsafe { peer(at) }.map(|(host, port)| Endpoint::v4(host, port))
}

const INET: libc::sa_family_t = AF_INET as libc::sa_family_t;

/// An endpoint for the program. The queue speaks IPv4 only.
#[inline]
pub fn sockaddr(of: Endpoint) -> sockaddr_in {
    let host = match of.addr {
        IpAddr::V4(host) => host,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    };
    sockaddr_in {
        sin_family: INET,
        sin_port: of.port.to_be(),
        sin_addr: in_addr {
            s_addr: host.to_bits().to_be(),
        },
        sin_zero: [0; 8],
    }
}

/// No name.
pub const NO_SOCKADDR: sockaddr_in = sockaddr_in {
    sin_family: 0,
    sin_port: 0,
    sin_addr: in_addr { s_addr: 0 },
    sin_zero: [0; 8],
};
