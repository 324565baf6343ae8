//! Firecracker: a file that describes the machine, and a line that starts it.

use qemu::{Disk, Machine};
use serde_json::{Value, json};

use super::{check, mac, tap};
use crate::commands::shell_quoted;
use crate::failure::Failure;
use crate::flags::VmmFlag;

/// Its most CPUs.
pub(super) const CPUS_MAX: u8 = 32;

/// A shell's lines that write the file and start the machine.
///
/// Errors: `VmmLacks`.
pub fn script(machine: &Machine) -> Result<String, Failure> {
    check(VmmFlag::Firecracker, machine)?;
    let path = machine.state.join("firecracker.json");
    let path = shell_quoted(&path.to_string_lossy());
    let file = format!("{:#}", file(machine));
    Ok(format!(
        "cat > {path} <<'END'\n{file}\nEND\nfirecracker --no-api --config-file {path}"
    ))
}

/// The file by Firecracker's `docs/getting-started.md` and its API's schema.
fn file(machine: &Machine) -> Value {
    let cards = tap(machine).map(|interface| {
        let mut card = json!({ "iface_id": "net", "host_dev_name": interface });
        if let Some(mac) = mac(machine) {
            card["guest_mac"] = mac.into();
        }
        card
    });
    let disks = machine.disks.iter().enumerate().map(drive);
    json!({
        "boot-source": {
            "kernel_image_path": machine.kernel,
            "initrd_path": machine.initrd,
            "boot_args": machine.command_line,
        },
        "machine-config": { "vcpu_count": machine.cpus, "mem_size_mib": machine.memory_mib },
        "drives": disks.collect::<Vec<_>>(),
        "network-interfaces": cards.into_iter().collect::<Vec<_>>(),
    })
}

/// Flushes are obeyed only where the cache is said to be written back.
fn drive((number, disk): (usize, &Disk)) -> Value {
    let cache = match disk.is_unsafe {
        true => "Unsafe",
        false => "Writeback",
    };
    json!({
        "drive_id": format!("disk{number}"),
        "path_on_host": disk.file,
        "is_root_device": false,
        "is_read_only": disk.read_only,
        "cache_type": cache,
    })
}
