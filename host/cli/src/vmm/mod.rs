//! Other virtual machine monitors: what starts a machine there (`sietch run --dry-run --vmm NAME`).
//!
//! Firecracker and cloud-hypervisor load the kernel as QEMU does: by PVH, or by its entry of 64 bits, with the image as
//! initrd. Both lack devices that QEMU has. A machine that needs one of those is refused with the way out; what the
//! machine can do without is a note.
//!
//! Not here: starting them. They need KVM and a tap interface, which is their user's to make.

pub mod cloud_hypervisor;
pub mod firecracker;

use qemu::{Disk, DiskBus, DiskFormat, Machine, Net, Nic};

use crate::failure::Failure;
use crate::flags::VmmFlag;

/// What is different there, a sentence each.
pub fn notes(vmm: VmmFlag, machine: &Machine) -> Vec<String> {
    let name = vmm.title();
    let mut notes = vec![format!(
        "{name} passes no exit status on: the kernel's own words, which tell it, go to a second serial port that is not there."
    )];
    if machine.net == Net::User {
        notes.push(format!(
            "{name} has no network of its own, so this machine has no card and -p leads nowhere: give --net tap=INTERFACE and --ip ADDRESS/LENGTH,GATEWAY."
        ));
    }
    notes
}

/// Whether `vmm` has all that the machine cannot do without.
///
/// Errors: `VmmLacks`.
fn check(vmm: VmmFlag, machine: &Machine) -> Result<(), Failure> {
    let is_small = vmm == VmmFlag::Firecracker;
    let has = |is_such: fn(&Disk) -> bool| machine.disks.iter().any(is_such);
    let lacking = [
        (
            !machine.volumes.is_empty(),
            "folders of the host (virtio-9p)",
            "use a volume by its name, or --add",
        ),
        (
            machine.nic != Nic::Virtio && machine.net != Net::None,
            "Intel's cards",
            "leave --nic out",
        ),
        (
            matches!(machine.net, Net::Switched(_) | Net::Datagrams { .. }),
            "networks of sockets",
            "use --net tap=INTERFACE",
        ),
        (
            machine.has_iommu,
            "Intel's IOMMU",
            "leave --iommu and --bypass out",
        ),
        (
            machine.has_balloon,
            "a balloon by our flags",
            "leave --balloon out",
        ),
        (
            machine.nodes > 1,
            "NUMA nodes by our flags",
            "leave --nodes out",
        ),
        (
            has(|disk| disk.bus == DiskBus::Nvme),
            "NVMe",
            "use bus=virtio",
        ),
        (
            has(|disk| disk.block_bytes.is_some() || disk.trial.is_some()),
            "a choice of disks' blocks",
            "leave block= out",
        ),
        (
            is_small && has(|disk| disk.format == DiskFormat::Qcow2),
            "qcow2 disks",
            "make it raw with qemu-img convert",
        ),
        (
            is_small && machine.cpus > firecracker::CPUS_MAX,
            "more than 32 CPUs",
            "use --cpus 32",
        ),
    ];
    match lacking.into_iter().find(|(is_needed, ..)| *is_needed) {
        Some((_, what, way)) => Err(Failure::VmmLacks {
            vmm: vmm.title(),
            what,
            way,
        }),
        None => Ok(()),
    }
}

/// The tap interface that the card leads to.
fn tap(machine: &Machine) -> Option<&str> {
    match &machine.net {
        Net::Tap { interface } => Some(interface),
        _ => None,
    }
}

/// The card's address as both write it.
fn mac(machine: &Machine) -> Option<String> {
    let bytes = machine.mac?.map(|byte| format!("{byte:02x}"));
    Some(bytes.join(":"))
}
