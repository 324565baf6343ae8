//! SIOCGARP: which station has an address of IPv4 (arp(7)), in `struct arpreq`: two addresses of 16 bytes, flags, a mask
//! and an interface's name.
//!
//! Not here: SIOCSARP and SIOCDARP, for which there is `ip neighbour`.

use core::net::Ipv4Addr;

use base::VirtAddr;
use linux_raw_sys::net::AF_INET;
use mm::user;
use net::{current_stack, plan};
use sync::Error;

use linux_abi::call::Outcome;
use linux_abi::errno::Errno;

/// include/uapi/linux/sockios.h.
pub(crate) const SIOCGARP: u32 = 0x8954;
/// What is known of a station; what was set by hand.
const ATF_COM: u32 = 2;
const ATF_PERM: u32 = 4;
/// Where the parts of the request are.
const STATION_AT: u64 = 16;
const FLAGS_AT: u64 = 32;
const NAME_AT: u64 = 52;
const NAME_BYTES: usize = 16;

/// Tells the station of the address in the request at `at`.
///
/// Errors: EPFNOSUPPORT for an address of another family, ENODEV without an interface of that name, ENXIO if nothing is
/// known.
pub(crate) fn tell(at: VirtAddr) -> Outcome {
    let [low, high, _, _, a, b, c, d] = user::read::<[u8; 8]>(at)?;
    if u16::from_ne_bytes([low, high]) != AF_INET as u16 {
        return Err(Errno::EPFNOSUPPORT);
    }
    let name: [u8; NAME_BYTES] = user::read(at + NAME_AT)?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let stack = current_stack();
    let interface = stack.interface_named(name).ok_or(Errno::ENODEV)?;
    let ip = Ipv4Addr::new(a, b, c, d);
    let all = plan::neighbours(&stack);
    let found = all
        .iter()
        .find(|one| one.interface == interface.number && one.ip == ip);
    let (found, mac) = found
        .and_then(|one| Some((one, one.mac?)))
        .ok_or(Error::NoSuchDevice)?;
    let [low, high] = interface.hardware_type.to_ne_bytes();
    let [a, b, c, d, e, f] = mac;
    user::copy_out(&[low, high, a, b, c, d, e, f], at + STATION_AT)?;
    let flags = match found.is_permanent() {
        true => ATF_COM | ATF_PERM,
        false => ATF_COM,
    };
    user::write(at + FLAGS_AT, flags)?;
    Ok(0)
}
