//! `sietch snapshot`, `sietch snapshots`: machines that others go on from (`sietch run --from`).

mod guard;

use qemu::Qemu;
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;
use crate::flags::OutputFlags;
use crate::flags::{SnapshotFlags, SnapshotsFlags, told};
use crate::snapshots::{self, Saved, Snapshot};
use crate::state::{self, Folder};
use guard::Guard;

/// Takes one.
pub fn snapshot(flags: &SnapshotFlags) -> Result<u8, Failure> {
    let name = flags.name.clone();
    if flags.guard {
        return guard::guard(&name);
    }
    let folder = Folder::of(&name);
    let settings = folder.running();
    let settings = settings.ok_or_else(|| Failure::NoSuchMachine { name: name.clone() })?;
    let plan = folder.plan();
    let (machine, files) = plan.ok_or_else(|| Failure::NoAgent { name: name.clone() })?;
    let has_joined = !settings.further_networks.is_empty();
    let joined = has_joined.then_some(qemu::snapshot::OWN_ADDRESS);
    if let Some(obstacle) = qemu::snapshot::obstacle(&machine).or(joined) {
        return Err(Failure::NoSnapshot { name, obstacle });
    }
    let saved = Saved {
        settings,
        files,
        at_s: state::now_s(),
        machine,
    };
    let qemu = Qemu::find()?;
    let snapshot = Snapshot::of(flags.snapshot.as_deref().unwrap_or(&name))?;
    // Who interrupts it must not leave the machine standing.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Default::default()).map_err(Failure::Lost)?;
    }
    snapshot.make(&saved, |folder| {
        let guard = Guard::over(&saved.settings.name)?;
        qemu::snapshot::save(&qemu, &saved.machine, folder)?;
        guard.dismiss();
        Ok(())
    })?;
    println!("{}", snapshot.name());
    Ok(0)
}

/// Lists them, or removes some.
pub fn snapshots(flags: &SnapshotsFlags) -> Result<u8, Failure> {
    for name in &flags.removed {
        Snapshot::of(name)?.remove()?;
        println!("{name}");
    }
    if flags.removed.is_empty() {
        list(&flags.output)?;
    }
    Ok(0)
}

/// The fields are those of `--output json`.
#[derive(Serialize)]
struct Row {
    name: String,
    memory_bytes: u64,
    disk_bytes: u64,
    command: String,
    created_s: u64,
}

fn list(output: &OutputFlags) -> Result<(), Failure> {
    let row = |(snapshot, saved): (Snapshot, Saved)| Row {
        name: snapshot.name().into(),
        memory_bytes: u64::from(saved.machine.memory_mib) << 20,
        disk_bytes: snapshot.host_bytes(),
        command: saved.settings.command.join(" "),
        created_s: saved.at_s,
    };
    let rows: Vec<Row> = snapshots::all()?.into_iter().map(row).collect();
    output.list(&rows, |rows| {
        println!("{:<24} {:>8} {:>8}  COMMAND", "NAME", "MEMORY", "DISK");
        for row in rows {
            println!(
                "{:<24} {:>8} {:>8}  {}",
                row.name,
                told(row.memory_bytes),
                told(row.disk_bytes),
                row.command,
            );
        }
    })
}
