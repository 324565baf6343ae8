//! A filter as a file: whoever has a descriptor may attach it, and make a socket that has it.
//!
//! There is nothing like it on Linux; `docs/rings.md` has the interface.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::VirtAddr;
use cred::{Capability, Resource};
use link::filters::{Ends, Ports, Predicate};
use link::prefix::IpPrefix;
use mach::mem::fallible;
use mm::user;
use net::{Attachment, Filter, current_stack};
use sync::{Error, Result};
use task::current;
use vfs::file::{File, FileRef, OpenFile, StatusFlags};

use crate::socket::XdpSocket;

/// `_IOW(0xda, 1, struct xdp_filter)`: of an AF_XDP socket; a new filter's descriptor.
pub const CREATE: u32 = 0x4060_da01;
/// `_IO(0xda, 2)`: of a filter; the descriptor of a socket that has it.
const SOCKET: u32 = 0xda02;

/// `struct xdp_filter`: the interface's number, flags, and two predicates.
const FILTER_BYTES: usize = 8 + 2 * PREDICATE_BYTES;
/// What is sent is what is received, the other way round.
const BOTH_WAYS: u32 = 1;

/// `struct xdp_predicate`: the family, the protocol or 0, bits of our and the peer's addresses, our first and last
/// ports, the peer's, and the addresses.
const PREDICATE_BYTES: usize = 44;
const INET: u8 = 2;
const INET6: u8 = 10;

/// See the module.
pub struct FilterFile(Arc<Filter>);

impl FilterFile {
    /// The filter that a descriptor of the running program stands for.
    ///
    /// Errors: `BadFile` for none, `Invalid` for another file.
    pub fn of(descriptor: i32) -> Result<Arc<Filter>> {
        let descriptor = u32::try_from(descriptor).map_err(|_| Error::BadFile)?;
        let open = current().files.get().get(descriptor)?;
        let file = open.file.as_any().downcast_ref::<Self>();
        file.map(|file| file.0.clone()).ok_or(Error::Invalid)
    }
}

/// Makes a filter as the program says, which needs the right to take the link.
///
/// Errors: `NotPermitted`, `BadAddress`, `Invalid` for what makes no sense, and those of [`Filter::new`].
pub fn create(argument: u64) -> Result<usize> {
    cred::credentials().get().require(Capability::NetAdmin)?;
    let mut bytes = [0; FILTER_BYTES];
    user::copy_in(VirtAddr(argument), &mut bytes)?;
    let (head, predicates) = bytes.split_at(8);
    let (receives, sends) = predicates.split_at(PREDICATE_BYTES);
    let receives = predicate(receives)?;
    let sends = match word(head, 4)? {
        0 => predicate(sends)?,
        BOTH_WAYS => receives,
        _ => return Err(Error::Invalid),
    };
    let filter = Filter::new(&current_stack(), word(head, 0)?, receives, sends)?;
    give_descriptor(fallible::arc(FilterFile(fallible::arc(filter)?))?)
}

fn word(bytes: &[u8], at: usize) -> Result<u32> {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.map(|word| u32::from_ne_bytes(*word))
        .ok_or(Error::Invalid)
}

/// Errors: `Invalid`.
fn predicate(bytes: &[u8]) -> Result<Predicate> {
    let (head, rest) = bytes.split_first_chunk::<4>().ok_or(Error::Invalid)?;
    let &[family, protocol, local_bits, peer_bits] = head;
    let (ports, rest) = rest.split_first_chunk::<8>().ok_or(Error::Invalid)?;
    let (local, rest) = rest.split_first_chunk::<16>().ok_or(Error::Invalid)?;
    let peer = rest.first_chunk::<16>().ok_or(Error::Invalid)?;
    let (local_ports, peer_ports) = ports.split_at(4);
    let local = ends(family, local, local_bits, local_ports)?;
    let peer = ends(family, peer, peer_bits, peer_ports)?;
    let protocol = Some(protocol).filter(|number| *number != 0);
    Predicate::new(local, peer, protocol).map_err(|_| Error::Invalid)
}

/// From port 0 to port 0 is without a port.
fn ends(family: u8, address: &[u8; 16], bits: u8, ports: &[u8]) -> Result<Ends> {
    let address = match family {
        INET => {
            let [a, b, c, d, ..] = *address;
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        INET6 => IpAddr::V6(Ipv6Addr::from(*address)),
        _ => return Err(Error::Invalid),
    };
    let &[a, b, c, d] = ports.first_chunk().ok_or(Error::Invalid)?;
    let ports = match (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d])) {
        (0, 0) => None,
        (first, last) => Some(Ports::new(first, last).ok_or(Error::Invalid)?),
    };
    Ok(Ends {
        address: IpPrefix::new(address, bits).ok_or(Error::Invalid)?,
        ports,
    })
}

/// A descriptor for a file, closed by execve.
fn give_descriptor(file: FileRef) -> Result<usize> {
    let open = OpenFile::new(file, StatusFlags::RDWR);
    let me = current();
    let limit = me.process.limits.soft(Resource::Files);
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    Ok(me.files.get().insert(open, true, 0, limit)? as usize)
}

impl File for FilterFile {
    fn ioctl(&self, _open: &OpenFile, request: u32, _argument: u64) -> Result<usize> {
        match request {
            SOCKET => {
                let attachment: Attachment = self.0.attach()?;
                give_descriptor(fallible::arc(XdpSocket::with_filter(attachment))?)
            }
            _ => Err(Error::NotTerminal),
        }
    }

    fn label(&self) -> String {
        String::from("anon_inode:[xdp-filter]")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
