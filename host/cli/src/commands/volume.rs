//! `sietch volume`: disks with a name, which outlive machines.

use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::flags::OutputFlags;
use crate::flags::{
    ByteSize, CreateFlags, FsckFlags, NamesFlags, VolumeCommand, VolumeInspectFlags, told,
};
use crate::volumes::{self, Content, ROOT, Repair, Store, Volume};

/// Exit status of `fsck` when something was mended, as fsck(8) has it.
const MENDED: u8 = 1;

/// Runs the command.
pub fn volume(command: &VolumeCommand) -> Result<u8, Failure> {
    let store = Store::of_user()?;
    match command {
        VolumeCommand::Create(flags) => create(&store, flags),
        VolumeCommand::Ls(output) => ls(&store, output),
        VolumeCommand::Rm(flags) => rm(&store, flags),
        VolumeCommand::Inspect(flags) => inspect(&store, flags),
        VolumeCommand::Fsck(flags) => fsck(&store, flags),
    }
}

fn create(store: &Store, flags: &CreateFlags) -> Result<u8, Failure> {
    let content = match &flags.from {
        None => Content::Empty { owner: ROOT },
        Some(folder) => Content::Folder(folder),
    };
    let size = flags.size.unwrap_or(ByteSize::DEFAULT);
    volumes::make(store, &store.volume(&flags.name), size, content)?;
    println!("{}", flags.name);
    Ok(0)
}

/// The fields are those of `--output json`.
#[derive(Serialize)]
struct Row {
    name: String,
    size_bytes: u64,
    free_bytes: u64,
    host_bytes: u64,
    state: &'static str,
    used_by: Vec<String>,
}

fn ls(store: &Store, output: &OutputFlags) -> Result<u8, Failure> {
    let volumes = store.list()?;
    let rows: Vec<Row> = volumes.iter().map(row).collect();
    output.list(&rows, |rows| {
        println!(
            "{:<20} {:>9} {:>9} {:>9}  {:<8} USED BY",
            "NAME", "SIZE", "FREE", "ON HOST", "STATE"
        );
        for row in rows {
            let line = format!(
                "{:<20} {:>9} {:>9} {:>9}  {:<8} {}",
                row.name,
                told(row.size_bytes),
                told(row.free_bytes),
                told(row.host_bytes),
                row.state,
                row.used_by.join(", "),
            );
            println!("{}", line.trim_end());
        }
    })?;
    Ok(0)
}

fn row(volume: &Volume) -> Row {
    // One that was just removed, or cannot be read, has a row all the same.
    let summary = volume.summary().ok().flatten();
    let (size_bytes, free_bytes) = match &summary {
        Some(summary) => (summary.bytes, summary.free_bytes),
        None => (0, 0),
    };
    Row {
        name: volume.name().as_str().into(),
        size_bytes,
        free_bytes,
        host_bytes: volume.host_bytes(),
        state: state(volume, summary.as_ref()),
        used_by: volume.users(),
    }
}

/// How it was left; while it is used that is not to be seen from outside.
fn state(volume: &Volume, summary: Option<&ext4::Summary>) -> &'static str {
    match summary {
        None => "broken",
        Some(summary) if summary.has_errors => "errors",
        Some(_) if volume.is_in_use() => "in use",
        Some(summary) if summary.needs_recovery => "journal",
        Some(_) => "clean",
    }
}

fn rm(store: &Store, flags: &NamesFlags) -> Result<u8, Failure> {
    for name in &flags.names {
        store.volume(name).remove()?;
        println!("{name}");
    }
    Ok(0)
}

fn inspect(store: &Store, flags: &VolumeInspectFlags) -> Result<u8, Failure> {
    let volumes = flags
        .volumes
        .names
        .iter()
        .map(|name| described(&store.volume(name)));
    let volumes: Vec<Value> = volumes.collect::<Result<_, _>>()?;
    flags.output.show(&volumes)?;
    Ok(0)
}

fn described(volume: &Volume) -> Result<Value, Failure> {
    volume.must_exist()?;
    let summary = volume.summary()?;
    let file_system = summary.as_ref().map(|summary| {
        let label = String::from_utf8_lossy(&summary.label);
        json!({
            "uuid": volumes::uuid_text(&summary.uuid),
            "label": label.trim_end_matches('\0'),
            "size_bytes": summary.bytes,
            "free_bytes": summary.free_bytes,
        })
    });
    Ok(json!({
        "name": volume.name().as_str(),
        "file": volume.path(),
        "format": "raw",
        "host_bytes": volume.host_bytes(),
        "created_s": volume.created_s(),
        "state": state(volume, summary.as_ref()),
        "used_by": volume.users(),
        "ext4": file_system,
    }))
}

fn fsck(store: &Store, flags: &FsckFlags) -> Result<u8, Failure> {
    let repair = match (flags.dry_run, flags.repair) {
        (true, _) => Repair::Nothing,
        (_, true) => Repair::All,
        (_, false) => Repair::Safe,
    };
    match volumes::check(&store.volume(&flags.name), repair)? {
        true => Ok(MENDED),
        false => Ok(0),
    }
}
