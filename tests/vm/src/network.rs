//! How the tests reach their machines.
//!
//! QEMU's user network needs no rights, but it is slow and drops connections when
//! there are many. As root the tests therefore move into a network namespace of their
//! own with a tap interface: nothing there leads to the world.

use std::env;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Set for the process inside the namespace.
const INSIDE: &str = "SIETCH_TESTS_NAMESPACE";
const TAP: &str = "tap0";
/// The addresses are those of QEMU's user network, so images do not differ.
const MACHINE: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
const THIS_HOST: &str = "10.0.2.2/24";
const MACHINE_FLAG: &str = "10.0.2.15/24,10.0.2.2";

/// A way to the machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Ports of the loopback address, forwarded by QEMU.
    Forwarded,
    /// A tap interface in our own namespace.
    Tap,
}

/// Starts this program again inside a namespace where that is possible. Returns
/// inside of it, or at once where it is not.
pub fn enter_namespace() {
    if env::var_os(INSIDE).is_some() || !can_make_namespaces() {
        return;
    }
    let this = env::current_exe().unwrap_or_default();
    // Returns only if it fails, and then the user network does.
    let _ = Command::new("unshare")
        .arg("--net")
        .arg("--")
        .arg(this)
        .args(env::args_os().skip(1))
        .env(INSIDE, "1")
        .exec();
}

/// Makes the interfaces of the namespace, if we are inside of one.
pub fn of_this_process() -> Network {
    let steps = [
        "link set lo up".to_string(),
        format!("tuntap add mode tap {TAP}"),
        format!("address add {THIS_HOST} dev {TAP}"),
        format!("link set {TAP} up"),
    ];
    let is_inside = env::var_os(INSIDE).is_some();
    match is_inside && steps.iter().all(|step| ip(step)) {
        true => Network::Tap,
        false => Network::Forwarded,
    }
}

impl Network {
    /// Where a port of the next machine will be reached.
    pub fn address_of(self, port: u16) -> Result<SocketAddr, String> {
        match self {
            Self::Tap => Ok(SocketAddr::new(IpAddr::V4(MACHINE), port)),
            Self::Forwarded => {
                let port = qemu::free_tcp_port().map_err(|error| error.to_string())?;
                Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
            }
        }
    }

    /// The flags of `sietch run` that make `port` reachable at `reached`.
    pub fn flags(self, port: u16, reached: SocketAddr) -> Vec<String> {
        match self {
            Self::Tap => {
                vec![
                    "--net".into(),
                    format!("tap={TAP}"),
                    "--ip".into(),
                    MACHINE_FLAG.into(),
                ]
            }
            Self::Forwarded => vec!["-p".into(), format!("{reached}:{port}")],
        }
    }
}

fn can_make_namespaces() -> bool {
    let tried = Command::new("unshare").args(["--net", "true"]).output();
    tried.is_ok_and(|output| output.status.success()) && ip("-V")
}

fn ip(arguments: &str) -> bool {
    let run = Command::new("ip").args(arguments.split(' ')).output();
    run.is_ok_and(|output| output.status.success())
}
