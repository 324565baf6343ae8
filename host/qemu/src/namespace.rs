//! A network of our own for tests and benchmarks: a namespace with a tap interface.
//!
//! QEMU's user network needs no rights, but it is slow and drops connections when
//! there are many. As root a program therefore starts itself again in a namespace in
//! which nothing leads to the world. The addresses are those of QEMU's user network,
//! so images need not differ.

use std::env;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::{Nic, tap};

/// Set for the process inside the namespace.
const INSIDE: &str = "SIETCH_NAMESPACE";

/// The tap interface in the namespace.
pub const TAP: &str = "tap0";
/// The machine's address.
pub const MACHINE: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
/// The machine's address as `--ip` takes it.
pub const MACHINE_FLAG: &str = "10.0.2.15/24,10.0.2.2";
/// The machine's IPv6 address.
pub const MACHINE_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x51e7, 0, 0, 0, 0, 0, 0x15);
/// The machine's IPv6 address as `--ip6` takes it.
pub const MACHINE_V6_FLAG: &str = "fd00:51e7::15/64,fd00:51e7::2";
/// The first card's address unless QEMU is told another.
const MACHINE_MAC: &str = "52:54:00:12:34:56";
const ABSENT_MAC: &str = "52:54:00:ff:ff:ff";
const THIS_HOST: &str = "10.0.2.2/24";
/// This host's IPv6 address in the namespace.
pub const THIS_HOST_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x51e7, 0, 0, 0, 0, 0, 2);

/// Starts this program again inside a namespace where that is possible. Returns
/// inside of it, or at once where it is not.
pub fn enter() {
    if is_inside() || !can_make_namespaces() {
        return;
    }
    // Returns only if it fails, and then we go on outside.
    let _ = Command::new("unshare")
        .args(["--net", "--"])
        .arg(env::current_exe().unwrap_or_default())
        .args(env::args_os().skip(1))
        .env(INSIDE, "1")
        .exec();
}

/// Makes the interfaces of the namespace; false if we are not inside of one.
pub fn set_up() -> bool {
    is_inside() && ip("link set lo up") && add_tap(Nic::default())
}

/// Makes the tap interface anew if it is not one for `nic`; false if that fails. No machine may
/// be using it, and what [`add_address`] added is gone.
pub fn suit(nic: Nic) -> bool {
    let is_suited = (tap::queues(TAP, 1) == 1) == nic.has_one_queue();
    is_suited || ip(&format!("link delete {TAP}")) && add_tap(nic)
}

fn add_tap(nic: Nic) -> bool {
    let queues = match nic.has_one_queue() {
        true => "",
        false => " multi_queue",
    };
    let steps = [
        format!("tuntap add mode tap {TAP}{queues}"),
        format!("address add {THIS_HOST} dev {TAP}"),
        // Nobody else is there who could have it.
        format!("address add {THIS_HOST_V6}/64 dev {TAP} nodad"),
        format!("link set {TAP} up"),
        // Known from the start, so that a first packet never waits for the retries
        // of ARP or of discovery.
        format!("neighbour replace {MACHINE} lladdr {MACHINE_MAC} dev {TAP}"),
        format!("neighbour replace {MACHINE_V6} lladdr {MACHINE_MAC} dev {TAP}"),
    ];
    steps.iter().all(|step| ip(step))
}

/// Gives this host one more address at the tap interface; false if that fails.
pub fn add_address(address: impl Into<IpAddr>) -> bool {
    ip(&match address.into() {
        IpAddr::V4(address) => format!("address replace {address}/24 dev {TAP}"),
        // Nobody else is there who could have it.
        IpAddr::V6(address) => format!("address add {address}/64 dev {TAP} nodad"),
    })
}

/// Lets this host send to a station at the tap interface that nobody is; false if that fails.
pub fn add_absent_station(address: Ipv4Addr) -> bool {
    ip(&format!(
        "neighbour replace {address} lladdr {ABSENT_MAC} dev {TAP}"
    ))
}

/// Whether this process was started by [`enter`].
pub fn is_inside() -> bool {
    env::var_os(INSIDE).is_some()
}

fn can_make_namespaces() -> bool {
    let tried = Command::new("unshare").args(["--net", "true"]).output();
    tried.is_ok_and(|output| output.status.success()) && ip("-V")
}

fn ip(arguments: &str) -> bool {
    let run = Command::new("ip").args(arguments.split(' ')).output();
    run.is_ok_and(|output| output.status.success())
}
