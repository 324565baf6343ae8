//! `vsaadm`: areas of disks that programs own (`docs/vsa.md`).
//!
//! Each command is one line to `/dev/vsa/control` (`core/vsa`, `control`); what there is is read from there.

use std::io;

use clap::{Parser, Subcommand};
use vsa::control::Request;

use crate::World;

const CONTROL: &str = "/dev/vsa/control";

/// Makes, shows and changes areas of disks that programs own
///
/// An area is a part of a disk that its owner opens as /dev/vsa/NAME. Sizes are bytes, or end with K, M, G or T. Names of disks
/// are as in /dev.
#[derive(Parser)]
#[command(name = "vsaadm")]
struct Flags {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make an empty catalogue on a disk or partition; what was on it is lost
    Format {
        /// The disk: vda, nvme0n1p2
        disk: String,
    },
    /// Make an area, which reads as zeroes
    Create {
        /// Whose it is to be, a user's number; you if not given
        #[arg(short = 'u', long = "owner", value_name = "UID")]
        owner: Option<u32>,
        /// The disk
        disk: String,
        /// What it is to be called
        name: String,
        /// How long it is to be
        #[arg(value_parser = size)]
        size: u64,
    },
    /// Show disks with areas, and the areas
    Ls {
        /// Print fields between colons, for scripts: disk, uid, bytes, name
        #[arg(short = 'p', long = "parsable")]
        is_parsable: bool,
    },
    /// Give an area another size; of a smaller one the end is lost
    Resize {
        /// Which
        name: String,
        /// How long it is to be
        #[arg(value_parser = size)]
        size: u64,
    },
    /// Delete an area, also from programs that have it open
    Rm {
        /// Which
        name: String,
    },
    /// Take an area from all programs that have it open; it stays
    Revoke {
        /// Which
        name: String,
    },
    /// Show quotas, or say how much a user may have on a disk
    Quota {
        /// The disk
        disk: Option<String>,
        /// A user's number, or "all" for whoever has no quota of its own
        #[arg(requires = "disk")]
        user: Option<String>,
        /// How much, or "none" for as all others
        #[arg(requires = "user")]
        size: Option<String>,
    },
}

/// Runs `vsaadm`; returns its exit code.
pub fn run(arguments: &[String], world: &mut World<'_>) -> u8 {
    crate::run(arguments, world, |flags: Flags, world| {
        act(&flags.command, world)
    })
}

fn act(command: &Command, world: &mut World<'_>) -> Result<(), String> {
    let request = match command {
        Command::Ls { is_parsable } => return list(*is_parsable, world),
        Command::Quota {
            size: None, disk, ..
        } => return quotas(disk.as_deref(), world),
        Command::Format { disk } => Request::Format { disk: short(disk) },
        Command::Create {
            owner,
            disk,
            name,
            size,
        } => Request::Create {
            disk: short(disk),
            owner: owner.map_or_else(|| own_uid(world), Ok)?,
            bytes: *size,
            name: name.as_bytes(),
        },
        Command::Resize { name, size } => Request::Resize {
            bytes: *size,
            name: name.as_bytes(),
        },
        Command::Rm { name } => Request::Delete {
            name: name.as_bytes(),
        },
        Command::Revoke { name } => Request::Revoke {
            name: name.as_bytes(),
        },
        Command::Quota {
            disk,
            user,
            size: Some(size),
        } => Request::Quota {
            disk: short(disk.as_deref().unwrap_or("")),
            owner: user_of(user.as_deref().unwrap_or(""))?,
            bytes: match size.as_str() {
                "none" => None,
                text => Some(self::size(text)?),
            },
        },
    };
    let sent = world.files.write(CONTROL, &request.line());
    sent.map_err(|error| refusal(&request, &error))
}

fn short(disk: &str) -> &str {
    disk.strip_prefix("/dev/").unwrap_or(disk)
}

fn user_of(text: &str) -> Result<Option<u32>, String> {
    match text {
        "all" => Ok(None),
        text => text
            .parse()
            .map(Some)
            .map_err(|_| format!("{text} is no user's number")),
    }
}

/// Who runs the tool.
fn own_uid(world: &mut World<'_>) -> Result<u32, String> {
    let status = world.files.read("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let effective = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    effective.ok_or("the kernel does not say who you are".into())
}

/// Bytes of a size.
fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        Some((at, 'T' | 't')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let number = digits.parse::<u64>().ok();
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| format!("{text} is no size"))
}

/// One sentence.
fn refusal(request: &Request<'_>, error: &io::Error) -> String {
    let area = match request {
        Request::Create { name, .. }
        | Request::Resize { name, .. }
        | Request::Delete { name }
        | Request::Revoke { name } => {
            format!("area {}", name.escape_ascii())
        }
        Request::Format { disk } | Request::Quota { disk, .. } => format!("disk {disk}"),
    };
    let why = match error.raw_os_error() {
        Some(EPERM) => "you may not",
        Some(ENOENT) if !error_is_of_device(request) => "there is no such area",
        Some(ENOENT) => "this system has no areas",
        Some(ENXIO) => "the disk is not there or has no areas; see vsaadm format",
        Some(EBUSY) => "it is in use",
        Some(EEXIST) => "there is one of that name",
        Some(EINVAL) => "the name, the size or the disk cannot be",
        Some(EFBIG) => "what is free is in too many pieces",
        Some(ENFILE) => "the disk has as many areas or quotas as it may",
        Some(ENOSPC) => "the disk has not so much room",
        Some(EDQUOT) => "the owner may not have so much; see vsaadm quota",
        Some(EIO) => "the disk failed",
        _ => return format!("{area}: {error}"),
    };
    format!("{area}: {why}")
}

fn error_is_of_device(request: &Request<'_>) -> bool {
    matches!(
        request,
        Request::Format { .. } | Request::Create { .. } | Request::Quota { .. }
    )
}

/// Linux's numbers.
const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EIO: i32 = 5;
const ENXIO: i32 = 6;
const EBUSY: i32 = 16;
const EEXIST: i32 = 17;
const EINVAL: i32 = 22;
const ENFILE: i32 = 23;
const EFBIG: i32 = 27;
const ENOSPC: i32 = 28;
const EDQUOT: i32 = 122;

/// Bytes of a block, by disks.
fn block_bytes(text: &str, disk: &str) -> u64 {
    let of_disk = |line: &str| {
        let mut fields = line.strip_prefix("disk ")?.split(' ');
        let is_it = fields.next() == Some(disk);
        fields.next().filter(|_| is_it)?.parse().ok()
    };
    text.lines().find_map(of_disk).unwrap_or(1)
}

fn list(is_parsable: bool, world: &mut World<'_>) -> Result<(), String> {
    let text = world.files.read(CONTROL)?;
    let mut out = String::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(5, ' ').collect();
        match fields[..] {
            ["disk", disk, block, free, copies] if !is_parsable => {
                let free = free.parse::<u64>().unwrap_or(0) * block.parse::<u64>().unwrap_or(0);
                let copies = if copies == "2" {
                    ""
                } else {
                    ", one copy of the catalogue is damaged"
                };
                out += &format!("{disk}: {free} bytes free, blocks of {block}{copies}\n");
            }
            ["area", disk, owner, blocks, name] => {
                let bytes = blocks.parse::<u64>().unwrap_or(0) * block_bytes(&text, disk);
                out += &match is_parsable {
                    true => format!("{disk}:{owner}:{bytes}:{name}\n"),
                    false => format!("  {name:<24} {bytes:>16} bytes, user {owner}\n"),
                };
            }
            _ => {}
        }
    }
    world.console.print(&out);
    Ok(())
}

fn quotas(disk: Option<&str>, world: &mut World<'_>) -> Result<(), String> {
    let text = world.files.read(CONTROL)?;
    let mut out = String::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        if let ["quota", on, user, blocks] = fields[..]
            && disk.is_none_or(|disk| short(disk) == on)
        {
            let bytes = blocks.parse::<u64>().unwrap_or(0) * block_bytes(&text, on);
            let user = if user == "*" { "all others" } else { user };
            out += &format!("{on}: {user}: {bytes} bytes\n");
        }
    }
    world.console.print(&out);
    Ok(())
}
