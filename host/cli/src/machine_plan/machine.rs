//! The machine: board, memory, CPUs and disks.

use std::path::{Path, PathBuf};

use qemu::{Accel, Board, Disk, DiskBus, Machine, Nic, Origin, Stdio};

use crate::failure::Failure;
use crate::flags::{AccelFlag, BoardFlag, BypassFlag, DiskFlag, NicFlag, RunFlags};
use crate::kernel_file;
use crate::stdio::Console;

use super::Plan;
use super::command_line::{profiled, with_epoch, with_virtual_functions};
use super::folders::folders;
use super::network::net;

/// Memory of a machine whose image leaves room in it.
const MEMORY_MIB: u32 = 256;
/// Of one with a root of its own, in which any program may be. The host gives what is used only, and a program
/// that needs more says so at once (PostgreSQL, a Java server and RabbitMQ need up to 600 MiB).
const MEMORY_OF_ROOT_MIB: u32 = 1024;
/// What kernel and program need at the least, beside the image.
const MEMORY_BESIDE_IMAGE_MIB: u32 = 12;

/// Whether the board has what is asked for.
fn check_board(flags: &RunFlags) -> Result<(), Failure> {
    if flags.machine != BoardFlag::Microvm {
        return Ok(());
    }
    let has_nvme = flags.disk.iter().any(|disk| disk.bus == DiskBus::Nvme);
    match flags {
        _ if flags.nic != NicFlag::Virtio => Err(Failure::NoPciSlot),
        _ if flags.nodes > 1 => Err(Failure::NoNodes),
        _ if flags.iommu => Err(Failure::NoIommu),
        _ if has_nvme => Err(Failure::NoPciDisk),
        _ => Ok(()),
    }
}

/// The machine that boots `plan`, with its files in the folder `state`.
pub fn machine(flags: &RunFlags, plan: &Plan, state: &Path) -> Result<Machine, Failure> {
    check_board(flags)?;
    let mut command_line = profiled(plan.command_line.clone(), flags);
    command_line = with_virtual_functions(command_line, &flags.disk);
    for (key, value) in &flags.kernel_option {
        command_line = command_line.set(key, value);
    }
    if plan.packed.is_some() {
        // What programs look for in vain may be on the host: `absent` says which of it is.
        command_line = command_line.set("packed", "1");
    }
    if flags.root.read_only {
        command_line = command_line.set("ro", "1");
    }
    for tmpfs in flags.root.tmpfs() {
        command_line = command_line.mount_tmpfs(&tmpfs.options, &tmpfs.guest);
    }
    let forwards: Vec<_> = flags.publish.iter().map(|publish| publish.0).collect();
    let is_card_for_program = flags.bypass == Some(BypassFlag::Card);
    let has_iommu = flags.iommu || is_card_for_program;
    let (command_line, volumes) = folders(flags, has_iommu, command_line)?;
    Ok(Machine {
        kernel: kernel_file::find()?,
        initrd: image_path(state),
        command_line: with_epoch(command_line).into_string(),
        board: match flags.machine {
            BoardFlag::Q35 => Board::Q35,
            BoardFlag::Microvm => Board::Microvm,
        },
        accel: match flags.accel {
            AccelFlag::Auto => Accel::Auto,
            AccelFlag::Kvm => Accel::Kvm,
            AccelFlag::Tcg => Accel::Tcg,
            AccelFlag::TcgCounted => Accel::TcgCounted,
        },
        memory_mib: memory_mib(flags, plan)?,
        cpus: flags.cpus,
        nodes: flags.nodes,
        has_iommu,
        has_balloon: flags.balloon,
        is_card_for_program,
        nic: match flags.nic {
            NicFlag::Virtio => Nic::Virtio,
            NicFlag::E1000 => Nic::E1000,
            NicFlag::Igb => Nic::Igb,
        },
        mac: flags.mac_address.map(|mac| mac.0),
        net: net(flags),
        further_switches: 0,
        forwarder: qemu::passt::forwarder(&net(flags), &forwards),
        forwards,
        volumes,
        disks: disks(flags)?,
        stdio: match plan.console {
            Console::Serial { .. } => Stdio::Serial,
            Console::Streams(_) => Stdio::Ports,
        },
        plugin: None,
        state: state.into(),
        origin: Origin::Boot,
    })
}

/// The disks that `flags` ask for.
fn disks(flags: &RunFlags) -> Result<Vec<Disk>, Failure> {
    let disk = |disk: &DiskFlag| {
        let file = std::fs::canonicalize(&disk.file).map_err(|_| Failure::NoSuchPath {
            path: disk.file.clone(),
            flag: "--disk",
        })?;
        Ok(Disk {
            file,
            format: disk.format,
            read_only: disk.read_only,
            bus: disk.bus,
            block_bytes: disk.block_bytes,
            virtual_function: disk.virtual_function,
            is_unsafe: disk.is_unsafe,
            trial: disk.trial.clone(),
        })
    };
    flags.disk.iter().map(disk).collect()
}

/// Where a machine's image lies in its folder.
pub fn image_path(state: &Path) -> PathBuf {
    state.join("image.cpio")
}

/// The machine's memory: the user's wish if the image fits, or enough for the image.
fn memory_mib(flags: &RunFlags, plan: &Plan) -> Result<u32, Failure> {
    let image_mib = u32::try_from(plan.image.len().div_ceil(1 << 20)).unwrap_or(u32::MAX);
    let enough_mib = image_mib.saturating_add(MEMORY_BESIDE_IMAGE_MIB);
    match flags.memory {
        Some(memory) if memory.mib < enough_mib => Err(Failure::ImageTooLarge {
            image_mib,
            memory_mib: memory.mib,
            enough_mib,
        }),
        Some(memory) => Ok(memory.mib),
        None if plan.packed.is_none() => Ok(MEMORY_OF_ROOT_MIB.max(enough_mib)),
        None => Ok(MEMORY_MIB.max(image_mib.saturating_mul(2).saturating_add(128))),
    }
}
