//! What the kernel is told: its command line.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use qemu::{CommandLine, DiskBus, PROFILE_START, PROFILE_START_WAITS};

use crate::flags::{DiskFlag, Ip, ProgramFlags, RunFlags};
use crate::networks;

use super::GuestConfig;
use super::network::address;

pub(super) fn command_line(
    flags: &ProgramFlags,
    init: &Path,
    hostname: &str,
    around: &GuestConfig,
) -> CommandLine {
    let ip = match around.bypass {
        Some(_) => Ip::None,
        None => address(flags, &around.net),
    };
    let line = CommandLine::new()
        .set("init", &init.to_string_lossy())
        .set("hostname", hostname);
    let line = match around.networks.is_empty() {
        false => line,
        true => line.set("ip", &ip.to_string()),
    };
    let line = match around.networks.len() > 1 && around.packs_nothing() {
        true => line.set("cover", &format!("/{}", networks::LINKS_FILE)),
        false => line,
    };
    let line = match &around.names.domainname {
        Some(domain) => line.set("domainname", domain),
        None => line,
    };
    let line = match &flags.ip6 {
        Some(ip) => line.set("ip6", &ip.to_string()),
        None => line,
    };
    let line = match &around.bypass {
        Some(bypass) if bypass.is_of_card() => line.set("vfio", qemu::CARD_OF_PROGRAM),
        _ => line,
    };
    let switches = [("strace", flags.strace), ("clumsy", flags.clumsy)];
    let are_on = switches.into_iter().filter(|(_, is_on)| *is_on);
    are_on.fold(line, |line, (name, _)| line.set(name, "1"))
}

/// Adds the host's wall clock, read as late as possible.
pub fn with_epoch(line: CommandLine) -> CommandLine {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    line.set(
        "epoch",
        &format!("{}.{:09}", now.as_secs(), now.subsec_nanos()),
    )
}

/// Tells the kernel to profile from the boot on, if the user wants it, and how large its rings are.
pub(super) fn profiled(line: CommandLine, flags: &RunFlags) -> CommandLine {
    let ring_bytes = u64::from(flags.profile_ring) << 10;
    let line = line.set("profile_ring", &ring_bytes.to_string());
    let request = match (&flags.profile, flags.off_cpu) {
        (None, _) => return line,
        (Some(_), true) => PROFILE_START_WAITS,
        (Some(_), false) => PROFILE_START,
    };
    line.set("profile", &char::from(request).to_string())
}

/// Tells the kernel which virtual function of the NVMe controller has which namespace.
pub(super) fn with_virtual_functions(line: CommandLine, disks: &[DiskFlag]) -> CommandLine {
    let namespaces = disks.iter().filter(|disk| disk.bus == DiskBus::Nvme);
    let owned = (1..).zip(namespaces);
    let owned = owned.filter_map(|(number, disk)| Some((number, disk.virtual_function?)));
    let owned: Vec<(u32, u8)> = owned.collect();
    let Some(count) = owned.iter().map(|(_, function)| function).max() else {
        return line;
    };
    let pairs = owned
        .iter()
        .map(|(number, function)| format!("{number}:{function}"));
    line.set("nvme.max_vfs", &count.to_string())
        .set("nvme.attach", &pairs.collect::<Vec<_>>().join(","))
}
