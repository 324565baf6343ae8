//! cloud-hypervisor: one line.

use qemu::Machine;

use super::{check, mac, tap};
use crate::commands::shell_line;
use crate::failure::Failure;
use crate::flags::VmmFlag;

/// The line that starts the machine.
///
/// Errors: `VmmLacks`.
pub fn line(machine: &Machine) -> Result<String, Failure> {
    check(VmmFlag::CloudHypervisor, machine)?;
    let mut words = vec!["cloud-hypervisor".to_string()];
    let mut pair = |flag: &str, value: String| words.extend([flag.to_string(), value]);
    pair("--kernel", machine.kernel.display().to_string());
    pair("--initramfs", machine.initrd.display().to_string());
    pair("--cmdline", machine.command_line.clone());
    pair("--cpus", format!("boot={}", machine.cpus));
    pair("--memory", format!("size={}M", machine.memory_mib));
    pair("--serial", "tty".into());
    pair("--console", "off".into());
    if let Some(interface) = tap(machine) {
        let mac = mac(machine).map(|mac| format!(",mac={mac}"));
        pair(
            "--net",
            format!("tap={interface}{}", mac.unwrap_or_default()),
        );
    }
    let disks = machine.disks.iter().map(|disk| {
        let is_read_only = if disk.read_only { "on" } else { "off" };
        format!("path={},readonly={is_read_only}", disk.file.display())
    });
    let disks: Vec<String> = disks.collect();
    if !disks.is_empty() {
        words.push("--disk".into());
        words.extend(disks);
    }
    Ok(shell_line(words))
}
