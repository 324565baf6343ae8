//! Requests about interfaces, which any socket answers (netdevice(7)): `struct ifreq`, a name
//! of 16 bytes and 24 bytes of what is asked for.

use core::net::Ipv4Addr;

use base::VirtAddr;
use cred::Capability;
use linux_raw_sys::net::AF_INET;
use mm::user;
use net::{Interface, InterfaceFlags, LOOPBACK, current_stack};
use sync::{Error, Result};
use vfs::socket::Family;

use crate::arp::{self, SIOCGARP};
use linux_abi::call::{Call, Outcome};
use linux_abi::errno::Errno;

/// include/uapi/linux/sockios.h.
const SIOCGIFNAME: u32 = 0x8910;
const SIOCGIFCONF: u32 = 0x8912;
const SIOCGIFFLAGS: u32 = 0x8913;
const SIOCSIFFLAGS: u32 = 0x8914;
const SIOCGIFADDR: u32 = 0x8915;
const SIOCGIFDSTADDR: u32 = 0x8917;
const SIOCGIFBRDADDR: u32 = 0x8919;
const SIOCGIFNETMASK: u32 = 0x891b;
const SIOCGIFMETRIC: u32 = 0x891d;
const SIOCGIFMTU: u32 = 0x8921;
const SIOCGIFHWADDR: u32 = 0x8927;
const SIOCGIFINDEX: u32 = 0x8933;
const SIOCGIFTXQLEN: u32 = 0x8942;
const SIOCETHTOOL: u32 = 0x8946;
const SIOCGIFMAP: u32 = 0x8970;

const NAME_BYTES: usize = 16;
const ANSWER_BYTES: usize = 24;
const REQUEST_BYTES: usize = NAME_BYTES + ANSWER_BYTES;
/// Frames that may wait for the card, as Linux says by default.
const QUEUE_FRAMES: u32 = 1000;

type Answer = [u8; ANSWER_BYTES];

/// Whether `request` is one of these.
pub fn is_known(request: u32) -> bool {
    matches!(
        request,
        SIOCGIFNAME
            | SIOCGIFCONF
            | SIOCGIFFLAGS
            | SIOCSIFFLAGS
            | SIOCGIFADDR
            | SIOCGIFDSTADDR
            | SIOCGIFBRDADDR
            | SIOCGIFNETMASK
            | SIOCGIFMETRIC
            | SIOCGIFMTU
            | SIOCGIFHWADDR
            | SIOCGIFINDEX
            | SIOCGIFTXQLEN
            | SIOCETHTOOL
            | SIOCGIFMAP
            | SIOCGARP
    )
}

/// Whether `request` is for an address of IPv4, which only IPv4's sockets know.
fn asks_address(request: u32) -> bool {
    matches!(
        request,
        SIOCGIFADDR | SIOCGIFDSTADDR | SIOCGIFBRDADDR | SIOCGIFNETMASK | SIOCGARP
    )
}

/// Answers `request` to a socket of `family` at the address in argument 2.
pub fn ioctl(call: &Call<'_>, request: u32, family: Family) -> Outcome {
    let at = call.addr(2);
    if asks_address(request) && family != Family::Inet {
        return Err(Errno::ENOTTY);
    }
    match request {
        SIOCGARP => return arp::tell(at),
        SIOCGIFNAME => tell_name(at)?,
        SIOCGIFCONF => tell_all(at)?,
        SIOCSIFFLAGS => set_flags(at)?,
        _ => {
            let found = named(at, request)?;
            user::copy_out(&answer(&found, request)?, at + NAME_BYTES as u64)?;
        }
    }
    Ok(0)
}

/// The interface that a request names, perhaps with a colon and a label of one of its addresses.
///
/// Errors: `WrongDevice`; `AddressNotAvailable` for the address of a label, of which we have none.
fn named(at: VirtAddr, request: u32) -> Result<Interface> {
    let mut name = [0; NAME_BYTES];
    user::copy_in(at, &mut name)?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut parts = name.splitn(2, |byte| *byte == b':');
    let (name, label) = (parts.next().unwrap_or_default(), parts.next());
    let found = current_stack().interface_named(name);
    match label {
        Some(_) if asks_address(request) && found.is_some() => Err(Error::AddressNotAvailable),
        _ => found.ok_or(Error::WrongDevice),
    }
}

/// Sets what can be set; all interfaces are up, and the rest is as it is, as on Linux.
///
/// Errors: `NotPermitted` without CAP_NET_ADMIN, `Unsupported` to take an interface down.
fn set_flags(at: VirtAddr) -> Result<()> {
    let found = named(at, SIOCSIFFLAGS)?;
    cred::credentials().get().require(Capability::NetAdmin)?;
    let flags: u16 = user::read(at + NAME_BYTES as u64)?;
    let flags = InterfaceFlags::from_bits_truncate(flags);
    if !flags.contains(InterfaceFlags::UP) {
        return Err(Error::Unsupported);
    }
    current_stack().set_flags(found.number, flags);
    Ok(())
}

fn answer(of: &Interface, request: u32) -> Result<Answer> {
    match request {
        SIOCGIFFLAGS => Ok(padded(&current_stack().flags(of).bits().to_ne_bytes())),
        _ if asks_address(request) => address(of, request),
        // None has a metric, and memory of its own.
        SIOCGIFMETRIC | SIOCGIFMAP => Ok(padded(&[])),
        SIOCGIFMTU => Ok(padded(&of.mtu.to_ne_bytes())),
        SIOCGIFHWADDR => {
            let [low, high] = of.hardware_type.to_ne_bytes();
            let [a, b, c, d, e, f] = of.mac;
            Ok(padded(&[low, high, a, b, c, d, e, f]))
        }
        SIOCGIFINDEX => Ok(padded(&of.number.to_ne_bytes())),
        SIOCGIFTXQLEN => Ok(padded(&QUEUE_FRAMES.to_ne_bytes())),
        _ => Err(Error::Unsupported),
    }
}

fn padded(bytes: &[u8]) -> Answer {
    let mut answer = [0; ANSWER_BYTES];
    for (to, from) in answer.iter_mut().zip(bytes) {
        *to = *from;
    }
    answer
}

/// A `struct sockaddr_in`.
fn address(of: &Interface, request: u32) -> Result<Answer> {
    let own = current_stack()
        .address(of)
        .ok_or(Error::AddressNotAvailable)?;
    let ip = match request {
        SIOCGIFADDR | SIOCGIFDSTADDR => own.addr(),
        SIOCGIFNETMASK => own.mask(),
        // Nobody is reached by loopback but ourselves.
        _ if of.number == LOOPBACK => Ipv4Addr::UNSPECIFIED,
        _ => own.broadcast(),
    };
    let [low, high] = (AF_INET as u16).to_ne_bytes();
    let [a, b, c, d] = ip.octets();
    Ok(padded(&[low, high, 0, 0, a, b, c, d]))
}

/// The name of the interface whose number is given.
fn tell_name(at: VirtAddr) -> Result<()> {
    let number: u32 = user::read(at + NAME_BYTES as u64)?;
    let found = current_stack()
        .interface(number)
        .ok_or(Error::WrongDevice)?;
    user::copy_out(&name_field(&found), at)
}

fn name_field(of: &Interface) -> [u8; NAME_BYTES] {
    let mut name = [0; NAME_BYTES];
    for (to, from) in name.iter_mut().zip(of.name.bytes()) {
        *to = from;
    }
    name
}

/// `struct ifconf`: requests with addresses in a row, as many as there is room for.
fn tell_all(at: VirtAddr) -> Result<()> {
    let [room, to] = user::read::<[u64; 2]>(at)?;
    let stack = current_stack();
    let all = stack.interfaces().into_iter();
    let all = all.filter(|one| stack.address(one).is_some());
    let mut done = 0;
    // Without a place to store them, only their size is told.
    let fit = match to {
        0 => usize::MAX,
        _ => (room as u32) as usize / REQUEST_BYTES,
    };
    for found in all.take(fit) {
        if to != 0 {
            let place = VirtAddr(to) + done;
            user::copy_out(&name_field(&found), place)?;
            let address = address(&found, SIOCGIFADDR)?;
            user::copy_out(&address, place + NAME_BYTES as u64)?;
        }
        done += REQUEST_BYTES as u64;
    }
    user::write(at, done as u32)
}
