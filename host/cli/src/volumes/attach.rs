//! Volumes as disks of a machine.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ext4::Summary;
use qemu::{CommandLine, Disk, DiskBus, DiskFormat, Machine};

use super::check::recover;
use super::lock::{Access, Lock};
use super::make::{self, Content, ROOT, make};
use super::store::{Store, Volume, summary_of};
use crate::failure::Failure;
use crate::flags::{ByteSize, Mount, MountSource, Overlay, RootDisk, RunFlags, VolumeName, told};

/// The volumes of one machine; they are its own until this is dropped and QEMU has ended.
#[derive(Debug, Default)]
pub struct Attached {
    held: Vec<Held>,
    mounts: Vec<Place>,
    root: Option<Root>,
    /// What the kernel is told of changes of the root.
    overlay: Option<String>,
    /// What the user should know: sentences.
    pub notes: Vec<String>,
}

/// A volume that is the machine's.
#[derive(Debug)]
struct Held {
    volume: Volume,
    access: Access,
    summary: Summary,
    lock: Lock,
}

/// The disk that is the root.
#[derive(Debug)]
enum Root {
    /// Among the volumes that are held.
    Held(usize),
    /// A file that is no volume; QEMU itself locks it.
    File {
        path: PathBuf,
        uuid: [u8; 16],
        access: Access,
    },
}

/// Where a volume appears.
#[derive(Debug)]
struct Place {
    /// Among those that are held.
    held: usize,
    guest: String,
    read_only: bool,
}

/// Takes the volumes that `flags` name, and makes those that are not there.
///
/// Errors: `VolumeInUse`, `VolumeDamaged`, `TwinDisks`, and what making one says.
pub fn attach(flags: &RunFlags) -> Result<Attached, Failure> {
    let mut attached = Attached::default();
    if let Some(root) = &flags.root.root_disk {
        attached.take_root(root, flags)?;
    }
    if let Some(overlay) = flags.root.overlay() {
        attached.take_overlay(overlay, flags)?;
    }
    for mount in &flags.volume {
        if let Some(name) = named(mount) {
            attached.take(&Store::of_user()?, name, flags)?;
            attached.mount(name, mount);
        }
    }
    attached.check_twins(flags)?;
    Ok(attached)
}

pub(crate) fn named(mount: &Mount) -> Option<&VolumeName> {
    match &mount.source {
        MountSource::Volume(name) => Some(name),
        MountSource::Folder { .. } => None,
    }
}

impl Attached {
    /// Programs that we start from now on hold the volumes, too: QEMU, and no other one, which may live longer.
    pub fn inherit(&self) -> Result<(), Failure> {
        let mut held = self.held.iter();
        held.try_for_each(|held| held.lock.inherit(&held.volume))
    }

    /// Programs that we start from now on do not.
    pub fn withhold(&self) -> Result<(), Failure> {
        let mut held = self.held.iter();
        held.try_for_each(|held| held.lock.withhold(&held.volume))
    }

    /// Takes the volume, once for all places where it appears.
    fn take(&mut self, store: &Store, name: &VolumeName, flags: &RunFlags) -> Result<(), Failure> {
        if self.place_of(name).is_some() {
            return Ok(());
        }
        let is_read = |mount: &Mount| named(mount) != Some(name) || mount.read_only;
        let access = match flags.volume.iter().all(is_read) {
            true => Access::Read,
            false => Access::Write,
        };
        let volume = store.volume(name);
        if !volume.exists() && !flags.dry_run {
            make_default(store, &volume, owner_of_place(name, flags))?;
        }
        self.hold(store, volume, access)
    }

    /// An empty disk would be no root, so none is made.
    fn take_root(&mut self, root: &RootDisk, flags: &RunFlags) -> Result<(), Failure> {
        let access = match flags.root.overlay() {
            Some(_) => Access::Read,
            None => Access::Write,
        };
        let root = match root {
            RootDisk::Volume(name) => {
                let store = Store::of_user()?;
                self.hold(&store, store.volume(name), access)?;
                Root::Held(0)
            }
            RootDisk::File(path) => root_in_file(path, access)?,
        };
        self.root = Some(root);
        Ok(())
    }

    /// Takes what changes of the root go to; a volume that is not there is made.
    fn take_overlay(&mut self, overlay: &Overlay, flags: &RunFlags) -> Result<(), Failure> {
        let Overlay::Volume(name) = overlay else {
            self.overlay = Some("memory".into());
            return Ok(());
        };
        let store = Store::of_user()?;
        let volume = store.volume(name);
        if !volume.exists() && !flags.dry_run {
            make_default(&store, &volume, ROOT)?;
        }
        self.hold(&store, volume, Access::Write)?;
        let held = self.held.last();
        self.overlay = held.map(|held| format!("UUID={}", uuid_text(&held.summary.uuid)));
        Ok(())
    }

    fn hold(&mut self, store: &Store, volume: Volume, access: Access) -> Result<(), Failure> {
        let (lock, summary) = hold(&volume, access)?;
        if access == Access::Write {
            self.note_room(store, &volume, &summary);
        }
        self.held.push(Held {
            volume,
            access,
            summary,
            lock,
        });
        Ok(())
    }

    fn place_of(&self, name: &VolumeName) -> Option<usize> {
        self.held.iter().position(|held| held.volume.name() == name)
    }

    fn mount(&mut self, name: &VolumeName, mount: &Mount) {
        if let Some(held) = self.place_of(name) {
            self.mounts.push(Place {
                held,
                guest: mount.guest.clone(),
                read_only: mount.read_only,
            });
        }
    }

    /// A sparse image may ask for more than the host has left.
    fn note_room(&mut self, store: &Store, volume: &Volume, summary: &Summary) {
        let may_grow = summary.bytes.saturating_sub(volume.host_bytes());
        if let Ok(free) = make::free_bytes(store)
            && free < may_grow.min(summary.free_bytes)
        {
            self.notes.push(format!(
                "The volume {} may grow by {}, and its folder on this host has {} left.",
                volume.name(),
                told(may_grow),
                told(free)
            ));
        }
    }

    /// A machine finds a volume by its UUID, so no two of its disks may have the same.
    fn check_twins(&self, flags: &RunFlags) -> Result<(), Failure> {
        let volumes = self.held.iter().map(|held| {
            let path = held.volume.path().to_path_buf();
            (path, held.summary.uuid)
        });
        let raw = flags
            .disk
            .iter()
            .filter(|disk| disk.format == DiskFormat::Raw);
        let disks = raw.filter_map(|disk| {
            let summary = summary_of(&File::open(&disk.file).ok()?)?;
            Some((disk.file.clone(), summary.uuid))
        });
        let root = match &self.root {
            Some(Root::File { path, uuid, .. }) => Some((path.clone(), *uuid)),
            _ => None,
        };
        let all: Vec<(PathBuf, [u8; 16])> = root.into_iter().chain(volumes).chain(disks).collect();
        for (number, (path, uuid)) in all.iter().enumerate() {
            if let Some((twin, _)) = all[..number].iter().find(|(_, other)| other == uuid) {
                return Err(Failure::TwinDisks {
                    one: twin.clone(),
                    other: path.clone(),
                });
            }
        }
        Ok(())
    }

    /// Gives the machine its disks: the root is the first.
    pub fn add_to(&self, machine: &mut Machine) {
        let disk = |(_, held): (usize, &Held)| raw_disk(held.volume.path(), held.access);
        let is_root = |number| matches!(self.root, Some(Root::Held(root)) if root == number);
        let (root, others): (Vec<_>, Vec<_>) = self
            .held
            .iter()
            .enumerate()
            .partition(|(number, _)| is_root(*number));
        let root_file = match &self.root {
            Some(Root::File { path, access, .. }) => Some(raw_disk(path, *access)),
            _ => None,
        };
        let first = root.into_iter().map(disk).chain(root_file);
        machine.disks.splice(0..0, first);
        machine.disks.extend(others.into_iter().map(disk));
    }

    fn root_uuid(&self) -> Option<[u8; 16]> {
        match self.root.as_ref()? {
            Root::Held(held) => Some(self.held[*held].summary.uuid),
            Root::File { uuid, .. } => Some(*uuid),
        }
    }

    /// Their files.
    pub fn paths(&self) -> Vec<PathBuf> {
        let paths = self.held.iter().map(|held| held.volume.path());
        paths.map(PathBuf::from).collect()
    }

    /// Tells the kernel where they are mounted.
    pub fn told_to_kernel(&self, line: CommandLine) -> CommandLine {
        let line = match self.root_uuid() {
            Some(uuid) => line.set("root", &format!("UUID={}", uuid_text(&uuid))),
            None => line,
        };
        let line = match &self.overlay {
            Some(overlay) => line.set("overlay", overlay),
            None => line,
        };
        self.mounts.iter().fold(line, |line, place| {
            let uuid = uuid_text(&self.held[place.held].summary.uuid);
            line.mount_disk(&uuid, &place.guest, place.read_only)
        })
    }
}

fn raw_disk(file: &Path, access: Access) -> Disk {
    Disk {
        file: file.into(),
        format: DiskFormat::Raw,
        read_only: access == Access::Read,
        bus: DiskBus::Virtio,
        block_bytes: None,
        virtual_function: None,
        is_unsafe: false,
        trial: None,
    }
}

/// Who is to have a new volume: with a folder of the host as the root, who has its place there, as with docker.
fn owner_of_place(name: &VolumeName, flags: &RunFlags) -> (u32, u32) {
    let place = flags.volume.iter().find(|mount| named(mount) == Some(name));
    let in_root = place.zip(flags.root.folder()).and_then(|(mount, root)| {
        let path = root.join(mount.guest.trim_start_matches('/'));
        std::fs::metadata(path).ok()
    });
    in_root.map_or(ROOT, |place| (place.uid(), place.gid()))
}

/// One as large as usual, or as the host's disk is.
pub(crate) fn make_default(
    store: &Store,
    volume: &Volume,
    owner: (u32, u32),
) -> Result<(), Failure> {
    store.prepare()?;
    let free = make::free_bytes(store)? >> 20 << 20;
    let fitting = ByteSize::of(free).unwrap_or(ByteSize::DEFAULT);
    match make(
        store,
        volume,
        fitting.min(ByteSize::DEFAULT),
        Content::Empty { owner },
    ) {
        // Somebody else was faster, which is as good.
        Err(Failure::VolumeExists { .. }) => Ok(()),
        made => made,
    }
}

/// The root in a file of the host.
fn root_in_file(path: &Path, access: Access) -> Result<Root, Failure> {
    let path = std::fs::canonicalize(path).map_err(|_| Failure::NoSuchPath {
        path: path.into(),
        flag: "--root-disk",
    })?;
    let file = File::open(&path).map_err(Failure::file(&path))?;
    match summary_of(&file) {
        Some(Summary { uuid, .. }) => Ok(Root::File { path, uuid, access }),
        None => Err(Failure::NoRootFileSystem { path }),
    }
}

/// Locks it. Who only reads it cannot replay its journal, so that is done before.
fn hold(volume: &Volume, access: Access) -> Result<(Lock, Summary), Failure> {
    let lock = Lock::take(volume, access)?;
    let damaged = || Failure::VolumeDamaged {
        name: volume.name().to_string(),
    };
    let summary = summary_of(lock.file()).ok_or_else(damaged)?;
    if access == Access::Write || !summary.needs_recovery {
        return Ok((lock, summary));
    }
    drop(lock);
    let lock = Lock::take(volume, Access::Write)?;
    recover(volume)?;
    lock.share(volume)?;
    Ok((lock, summary))
}

/// As programs write it: `8-4-4-4-12` digits.
pub(crate) fn uuid_text(uuid: &[u8; 16]) -> String {
    let part = |range: std::ops::Range<usize>| {
        let digits = uuid[range].iter().map(|byte| format!("{byte:02x}"));
        digits.collect::<String>()
    };
    [
        part(0..4),
        part(4..6),
        part(6..8),
        part(8..10),
        part(10..16),
    ]
    .join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_written_in_five_parts() {
        let uuid = std::array::from_fn(|at| at as u8);
        assert_eq!(uuid_text(&uuid), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
