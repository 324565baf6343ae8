//! What a card is called after its place on the bus: `0000:02:10.1` is `enp2s16f1`, as systemd calls it
//! (systemd.net-naming-scheme(7)).

use alloc::format;
use alloc::string::String;

use vfs::socket::InterfaceName;

/// Devices of a bus, functions of a device.
const DEVICES: u8 = 32;
const FUNCTIONS: u8 = 8;

/// The name; `None` for what is no place.
pub(super) fn of_place(place: &str) -> Option<InterfaceName> {
    let (domain, rest) = place.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    let domain = u16::from_str_radix(domain, 16).ok()?;
    let bus = u8::from_str_radix(bus, 16).ok()?;
    let device = u8::from_str_radix(device, 16).ok()?;
    let function = u8::from_str_radix(function, 16).ok()?;
    if device >= DEVICES || function >= FUNCTIONS {
        return None;
    }
    let domain = match domain {
        0 => String::new(),
        further => format!("P{further}"),
    };
    let function = match function {
        0 => String::new(),
        further => format!("f{further}"),
    };
    InterfaceName::new(&format!("en{domain}p{bus}s{device}{function}"))
}
