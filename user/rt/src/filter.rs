//! Filters: parts of a link that a program may have without rights (`docs/rings.md`).

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use link::filters::{Ends, Predicate};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// `_IOW(0xda, 1, struct xdp_filter)` and `_IO(0xda, 2)`.
const CREATE: libc::Ioctl = 0x4060_da01;
const SOCKET: libc::Ioctl = 0xda02;

/// `struct xdp_predicate`.
#[repr(C)]
struct RawPredicate {
    family: u8,
    protocol: u8,
    bits: [u8; 2],
    ports: [[u16; 2]; 2],
    addresses: [[u8; 16]; 2],
}

/// `struct xdp_filter`.
#[repr(C)]
struct RawFilter {
    link: u32,
    flags: u32,
    predicates: [RawPredicate; 2],
}

/// A filter's descriptor. It may come from another program, and be passed on.
#[derive(Debug)]
pub struct Filter(OwnedFd);

impl Filter {
    /// Makes one for the link with this number (see [`Interface`](crate::Interface)): what its queue receives and
    /// what it may send.
    ///
    /// Errors: those of the system: CAP_NET_RAW and CAP_NET_ADMIN are needed, and no filter of the link may cross it.
    pub fn create(link: u32, receives: &Predicate, sends: &Predicate) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let any = socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?;
        let filter = RawFilter {
            link,
            flags: 0,
            predicates: [RawPredicate::of(receives), RawPredicate::of(sends)],
        };
        // SAFETY: the request reads a `struct xdp_filter`, and returns a descriptor that is nobody else's.
        unsafe {
            let made = libc::ioctl(any.as_raw_fd(), CREATE, &raw const filter);
            owned(made).map(Self)
        }
    }

    /// An AF_XDP socket that has the filter.
    ///
    /// Errors: those of the system: another socket has it, or it was revoked.
    pub(crate) fn socket(&self) -> io::Result<OwnedFd> {
        // SAFETY: the request has no argument, and returns a descriptor that is nobody else's.
        unsafe { owned(libc::ioctl(self.0.as_raw_fd(), SOCKET)) }
    }
}

/// # Safety
/// A descriptor is nobody else's.
unsafe fn owned(descriptor: libc::c_int) -> io::Result<OwnedFd> {
    match descriptor {
        // SAFETY: the caller's.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whatever the descriptor is: one that is no filter opens no queue.
impl From<OwnedFd> for Filter {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

impl AsFd for Filter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_raw_fd() == other.0.as_raw_fd()
    }
}

impl Eq for Filter {}

impl RawPredicate {
    fn of(predicate: &Predicate) -> Self {
        let (local, peer) = predicate.ends();
        let ends = [local, peer];
        Self {
            family: match local.address.addr() {
                IpAddr::V4(_) => libc::AF_INET as u8,
                IpAddr::V6(_) => libc::AF_INET6 as u8,
            },
            protocol: predicate.protocol().unwrap_or(0),
            bits: ends.map(|end| end.address.len()),
            ports: ends.map(ports_of),
            addresses: ends.map(|end| bytes_of(end.address.addr())),
        }
    }
}

fn ports_of(end: Ends) -> [u16; 2] {
    let range = end.ports.map(|ports| ports.range());
    range.map_or([0, 0], |(first, last)| [first, last])
}

fn bytes_of(address: IpAddr) -> [u8; 16] {
    let mut bytes = [0; 16];
    match address {
        IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes = address.octets(),
    }
    bytes
}
