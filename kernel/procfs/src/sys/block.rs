//! /sys/block: disks, their queues and partitions (Linux's Documentation/ABI/stable/sysfs-block).
//!
//! The files are those of the disks and partitions that there are: they are made anew when a table of
//! partitions was read. Paths are kept for good, each once.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{Result, Write};

use ::block::{Bulk, Cache, SECTOR_BYTES};
use kernel_block::{Disk, MINORS, Partition, disks};
use mach::sync::Spin;
use sync::Error;
use vfs::pseudo::{Link, Special, Target, Text, TextFile};
use vfs::{FileType, InodeRef, Metadata};

use super::TABLE;
use super::nvme::{OF_CONTROLLERS, controller_of};
use crate::proc::disks::columns;

/// What a file says of a disk, or of a partition of it.
pub(super) type Say = fn(&Disk, Option<&Partition>, &mut Text) -> Result;

/// Of disks and of partitions.
const OF_BOTH: [(&str, Say); 5] = [
    ("size", |disk, part, text| {
        let sectors = part.map_or(disk.limits().sectors, |part| part.sectors.count);
        writeln!(text, "{sectors}")
    }),
    ("ro", |disk, _, text| {
        writeln!(text, "{}", u8::from(disk.limits().is_read_only))
    }),
    ("dev", |disk, part, text| {
        let (major, minor) = device_of(disk, part);
        writeln!(text, "{major}:{minor}")
    }),
    ("alignment_offset", |disk, part, text| {
        let offset = if part.is_none() {
            disk.limits().alignment_offset
        } else {
            0
        };
        writeln!(text, "{offset}")
    }),
    ("uevent", |disk, part, text| {
        let (name, kind) = match part {
            None => (disk.name(), "disk"),
            Some(part) => (part.name, "partition"),
        };
        let (major, minor) = device_of(disk, part);
        writeln!(
            text,
            "MAJOR={major}\nMINOR={minor}\nDEVNAME={name}\nDEVTYPE={kind}"
        )
    }),
];

const OF_PARTITIONS: [(&str, Say); 3] = [
    ("stat", |_, part, text| {
        if let Some(part) = part {
            columns(&part.counters(), text)?;
        }
        writeln!(text)
    }),
    ("partition", |_, part, text| {
        writeln!(text, "{}", part.map_or(0, |part| part.number))
    }),
    ("start", |_, part, text| {
        writeln!(text, "{}", part.map_or(0, |part| part.sectors.first))
    }),
];

const OF_DISKS: [(&str, Say); 22] = [
    ("stat", |disk, _, text| {
        columns(&disk.counters(), text)?;
        writeln!(text)
    }),
    ("removable", |_, _, text| writeln!(text, "0")),
    ("hidden", |_, _, text| writeln!(text, "0")),
    ("range", |_, _, text| writeln!(text, "{MINORS}")),
    ("ext_range", |_, _, text| writeln!(text, "{MINORS}")),
    ("inflight", |disk, _, text| {
        writeln!(text, "{:8} {:8}", disk.counters().under_way, 0)
    }),
    ("queue/logical_block_size", |disk, _, text| {
        writeln!(text, "{}", disk.limits().block_bytes)
    }),
    ("queue/hw_sector_size", |disk, _, text| {
        writeln!(text, "{}", disk.limits().block_bytes)
    }),
    ("queue/physical_block_size", |disk, _, text| {
        writeln!(text, "{}", disk.limits().physical_bytes)
    }),
    ("queue/minimum_io_size", |disk, _, text| {
        writeln!(text, "{}", disk.limits().io_min())
    }),
    ("queue/optimal_io_size", |disk, _, text| {
        writeln!(text, "{}", disk.limits().optimal_bytes)
    }),
    ("queue/max_segments", |disk, _, text| {
        writeln!(text, "{}", disk.limits().segments_max)
    }),
    ("queue/max_segment_size", |disk, _, text| {
        writeln!(text, "{}", disk.limits().segment_bytes_max)
    }),
    ("queue/max_sectors_kb", |disk, _, text| {
        writeln!(text, "{}", disk.limits().command_bytes_max / 1024)
    }),
    ("queue/max_hw_sectors_kb", |disk, _, text| {
        writeln!(text, "{}", disk.limits().command_bytes_max / 1024)
    }),
    ("queue/discard_granularity", |disk, _, text| {
        let discard = disk.limits().discard;
        writeln!(
            text,
            "{}",
            discard.map_or(0, |bulk| u64::from(bulk.granularity) * SECTOR_BYTES)
        )
    }),
    ("queue/discard_max_bytes", |disk, _, text| {
        writeln!(text, "{}", bulk_bytes(disk.limits().discard))
    }),
    ("queue/write_zeroes_max_bytes", |disk, _, text| {
        writeln!(text, "{}", bulk_bytes(disk.limits().zeroes))
    }),
    ("queue/rotational", |_, _, text| writeln!(text, "0")),
    ("queue/scheduler", |_, _, text| writeln!(text, "[none]")),
    ("queue/nr_requests", |_, _, text| {
        writeln!(text, "{}", ::block::REQUESTS_MAX)
    }),
    ("queue/write_cache", |disk, _, text| {
        let kind = match disk.limits().cache {
            Cache::WriteBack { .. } => "write back",
            Cache::WriteThrough => "write through",
        };
        writeln!(text, "{kind}")
    }),
];

fn bulk_bytes(bulk: Option<Bulk>) -> u64 {
    bulk.map_or(0, |bulk| u64::from(bulk.sectors_max) * SECTOR_BYTES)
}

fn device_of(disk: &Disk, part: Option<&Partition>) -> (u32, u32) {
    disk.device(part.map_or(0, |part| part.number))
}

/// Makes the files anew; when disks or partitions have changed.
pub fn refresh() {
    let mut files = Vec::new();
    for disk in disks() {
        let folder = format!("block/{}", disk.name());
        add(&mut files, &folder, (disk, None), &[&OF_BOTH, &OF_DISKS]);
        for part in disk.partitions() {
            let folder = format!("{folder}/{}", part.name);
            let lists: [&[_]; 2] = [&OF_BOTH, &OF_PARTITIONS];
            add(&mut files, &folder, (disk, Some(&part)), &lists);
        }
    }
    TABLE.replace_specials(is_ours, &files);
}

fn is_ours(path: &str) -> bool {
    ["block/", "class/block/", "class/nvme/", "dev/block/"]
        .iter()
        .any(|folder| path.starts_with(folder))
}

/// What a folder is about.
type About<'a> = (&'a Disk, Option<&'a Partition>);

/// A file of a list, as an argument: the disk, the partition, the list, the place in it.
fn argument((disk, part): About<'_>, list: usize, place: usize) -> usize {
    let part = part.map_or(0, |part| usize::from(part.number));
    (disk.number() * MINORS as usize + part) << 16 | list << 8 | place
}

/// The place of the list of a controller.
const CONTROLLERS: usize = 2;

fn add_texts(
    files: &mut Vec<Special>,
    folder: &str,
    about: About<'_>,
    (list, names): (usize, &[(&str, Say)]),
) {
    for (place, (name, _)) in names.iter().enumerate() {
        files.push(Special {
            path: kept(format!("{folder}/{name}")),
            make: text_file,
            argument: argument(about, list, place),
            mode: 0o444,
            kind: FileType::Regular,
        });
    }
}

fn add(files: &mut Vec<Special>, folder: &str, about: About<'_>, lists: &[&[(&str, Say)]]) {
    for (list, names) in lists.iter().enumerate() {
        add_texts(files, folder, about, (list, names));
    }
    if let Some(number) = controller_of(about.0, about.1) {
        let list = (CONTROLLERS, &OF_CONTROLLERS[..]);
        add_texts(files, &format!("{folder}/device"), about, list);
        let folder = format!("class/nvme/nvme{number}");
        // Its first disk has them made already.
        if !files
            .iter()
            .any(|file| file.path.starts_with(&format!("{folder}/")))
        {
            add_texts(files, &folder, about, list);
        }
    }
    let name = folder.rsplit('/').next().unwrap_or(folder);
    let (major, minor) = device_of(about.0, about.1);
    for path in [
        format!("class/block/{name}"),
        format!("dev/block/{major}:{minor}"),
    ] {
        files.push(Special {
            path: kept(path),
            make: link,
            argument: argument(about, 0, 0),
            mode: 0o777,
            kind: FileType::Symlink,
        });
    }
}

/// A path that stays, each once.
fn kept(path: String) -> &'static str {
    /// Of all disks and partitions that there ever were, which minor numbers bound.
    static PATHS: Spin<Vec<&'static str>> = Spin::new(Vec::new());
    let mut paths = PATHS.lock();
    if let Some(known) = paths.iter().find(|known| **known == path) {
        return known;
    }
    let path = String::leak(path);
    paths.push(path);
    path
}

/// The device of an argument.
fn device(number: usize) -> Option<(&'static Disk, Option<Arc<Partition>>)> {
    let disk = disks().nth(number / MINORS as usize)?;
    match number % MINORS as usize {
        0 => Some((disk, None)),
        number => {
            let mut parts = disk.partitions().into_iter();
            let part = parts.find(|part| usize::from(part.number) == number)?;
            Some((disk, Some(part)))
        }
    }
}

fn text_file(metadata: Metadata, argument: usize) -> InodeRef {
    let text = move |text: &mut Text| {
        let (disk, part) = device(argument >> 16).ok_or(Error::NoSuchDevice)?;
        let list: &[(&str, Say)] = match (argument >> 8 & 0xff, &part) {
            (0, _) => &OF_BOTH,
            (CONTROLLERS, _) => &OF_CONTROLLERS,
            (_, None) => &OF_DISKS,
            (_, Some(_)) => &OF_PARTITIONS,
        };
        let (_, say) = list.get(argument & 0xff).ok_or(Error::NoSuchDevice)?;
        say(disk, part.as_deref(), text).map_err(|_| Error::Io)
    };
    TextFile::new(metadata, Box::new(text), None)
}

fn link(metadata: Metadata, argument: usize) -> InodeRef {
    let find = move || {
        let (disk, part) = device(argument >> 16).ok_or(Error::NoSuchDevice)?;
        let text = match part {
            None => format!("../../block/{}", disk.name()),
            Some(part) => format!("../../block/{}/{}", disk.name(), part.name),
        };
        Ok(Target::Text(text.into_bytes()))
    };
    Link::new(metadata, Box::new(find))
}
