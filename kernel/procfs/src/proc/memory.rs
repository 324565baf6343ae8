//! The memory of a process: maps, smaps, statm, and the strings it keeps there.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::{Error, Result, Write};

use base::{PAGE_BYTES, VirtAddr};
use mach::mem::LARGE_PAGE_BYTES;
use mm::{AddressSpace, AreaReport, AreaUsage, Label};

use super::task::{Part, Subject};
use vfs::device_parts;
use vfs::file::OpenFile;
use vfs::pseudo::Text;

/// Bytes of arguments or environment that are shown at most.
const STRINGS_BYTES_MAX: u64 = 128 << 10;
/// Bytes of them that are fetched at once.
const STRINGS_PIECE_BYTES: usize = 512;

fn space(subject: &Subject) -> core::result::Result<Arc<AddressSpace>, Error> {
    subject.space().map_err(|_| Error)
}

/// A record for each area from the one above the cursor, an address, on.
fn areas(
    subject: &Subject,
    cursor: u64,
    text: &mut Text,
    record: fn(&AddressSpace, &AreaReport, &mut Text) -> Result,
) -> Part {
    let space = space(subject)?;
    for area in space.areas_above(VirtAddr(cursor)) {
        record(&space, &area, text)?;
        if text.is_piece() {
            return Ok(Some(area.range.end.0));
        }
    }
    Ok(None)
}

/// /proc/PID/maps.
pub fn maps(subject: &Subject, cursor: u64, text: &mut Text) -> Part {
    areas(subject, cursor, text, |_, area, text| heading(area, text))
}

fn heading(area: &AreaReport, text: &mut Text) -> Result {
    let flag = |on: bool, letter: char| if on { letter } else { '-' };
    let start = text.len();
    write!(text, "{:x}-{:x} ", area.range.start.0, area.range.end.0)?;
    text.push(flag(area.access.read, 'r'));
    text.push(flag(area.access.write, 'w'));
    text.push(flag(area.access.exec, 'x'));
    text.push(if area.traits.shared { 's' } else { 'p' });
    write!(text, " {:08x} ", area.offset)?;
    let file = match &area.label {
        Label::File(mapped) => OpenFile::of_mapping(mapped).and_then(|open| open.metadata().ok()),
        _ => None,
    };
    let (major, minor) = device_parts(file.as_ref().map_or(0, |file| file.device));
    write!(
        text,
        "{major:02x}:{minor:02x} {} ",
        file.map_or(0, |file| file.number)
    )?;
    let name = name(&area.label);
    if !name.is_empty() {
        // Linux pads to this column.
        while text.len() - start < 73 {
            text.push(' ');
        }
        text.push_str(&name);
    }
    writeln!(text)
}

fn name(label: &Label) -> String {
    match label {
        Label::None => String::new(),
        Label::Heap => String::from("[heap]"),
        Label::Stack => String::from("[stack]"),
        Label::Other(name) => String::from(*name),
        Label::File(mapped) => OpenFile::of_mapping(mapped).map_or_else(String::new, file_name),
    }
}

fn file_name(open: &OpenFile) -> String {
    match &open.path {
        Some(path) => String::from_utf8_lossy(&path.name()).into_owned(),
        None => open.file.label(),
    }
}

/// /proc/PID/smaps.
pub fn smaps(subject: &Subject, cursor: u64, text: &mut Text) -> Part {
    areas(subject, cursor, text, |space, area, text| {
        heading(area, text)?;
        let bytes = area.range.end - area.range.start;
        writeln!(text, "Size:           {:8} kB", bytes / 1024)?;
        writeln!(text, "KernelPageSize: {:8} kB", PAGE_BYTES / 1024)?;
        writeln!(text, "MMUPageSize:    {:8} kB", PAGE_BYTES / 1024)?;
        let is_anonymous = !matches!(area.label, Label::File(_));
        let usage = space.usage(area.range.clone());
        let locked = if area.traits.locked {
            usage.resident
        } else {
            0
        };
        counters(&usage, locked, is_anonymous, text)?;
        let may_be_large = is_anonymous && bytes >= LARGE_PAGE_BYTES;
        writeln!(text, "THPeligible:    {:8}", u8::from(may_be_large))?;
        flags(area, text)
    })
}

/// /proc/PID/smaps_rollup.
pub fn smaps_rollup(subject: &Subject, text: &mut Text) -> Result {
    let space = space(subject)?;
    let all = VirtAddr(0)..mach::mem::USER_END;
    writeln!(
        text,
        "{:x}-{:x} ---p 00000000 00:00 0 [rollup]",
        all.start.0, all.end.0
    )?;
    let areas = space.areas_above(all.start);
    let locked = areas.filter(|area| area.traits.locked);
    let locked = locked.map(|area| space.usage(area.range).resident).sum();
    counters(&space.usage(all), locked, true, text)
}

/// `locked`: how many of the resident pages are.
fn counters(usage: &AreaUsage, locked: u64, is_anonymous: bool, text: &mut Text) -> Result {
    let kib = |pages: u64| pages * (PAGE_BYTES as u64 / 1024);
    let dirty = usage.private_dirty + usage.shared_dirty;
    let anonymous = if is_anonymous {
        usage.resident
    } else {
        usage.private_dirty
    };
    for (name, pages) in [
        ("Rss:", usage.resident),
        ("Pss:", usage.resident),
        ("Pss_Dirty:", dirty),
        ("Shared_Clean:", usage.shared_clean),
        ("Shared_Dirty:", usage.shared_dirty),
        ("Private_Clean:", usage.private_clean),
        ("Private_Dirty:", usage.private_dirty),
        ("Referenced:", usage.referenced),
        ("Anonymous:", anonymous),
        ("LazyFree:", 0),
        ("AnonHugePages:", usage.large),
        ("ShmemPmdMapped:", 0),
        ("FilePmdMapped:", 0),
        ("Shared_Hugetlb:", 0),
        ("Private_Hugetlb:", 0),
        ("Swap:", 0),
        ("SwapPss:", 0),
        ("Locked:", locked),
    ] {
        writeln!(text, "{name:<15} {:8} kB", kib(pages))?;
    }
    Ok(())
}

fn flags(area: &AreaReport, text: &mut Text) -> Result {
    text.push_str("VmFlags:");
    let flags = [
        (area.access.read, " rd"),
        (area.access.write, " wr"),
        (area.access.exec, " ex"),
        (area.traits.shared, " sh"),
        (true, " mr mw me"),
        (area.traits.grows_down, " gd"),
        (area.traits.locked, " lo"),
    ];
    for (_, name) in flags.iter().filter(|(on, _)| *on) {
        text.push_str(name);
    }
    writeln!(text)
}

/// /proc/PID/statm: pages mapped, resident, shared, of the program, 0, of data, 0.
pub fn statm(subject: &Subject, text: &mut Text) -> Result {
    let space = space(subject)?;
    let pages = |bytes: u64| bytes / PAGE_BYTES as u64;
    let (mapped, resident) = (pages(space.mapped_bytes()), pages(space.resident_bytes()));
    let sums = Sums::of(&space);
    writeln!(
        text,
        "{mapped} {resident} 0 {} 0 {} 0",
        pages(sums.text),
        pages(sums.data)
    )
}

/// Bytes mapped, by use.
#[derive(Default)]
pub struct Sums {
    /// Of programs and libraries.
    pub text: u64,
    /// Private and writable.
    pub data: u64,
    /// Of the stack.
    pub stack: u64,
}

impl Sums {
    /// Of all areas of a space.
    pub fn of(space: &AddressSpace) -> Self {
        let [text, data, stack] = space.sums(|area| {
            let is_data = !area.access.exec && area.access.write && !area.traits.shared;
            let when = |counts: bool| if counts { area.bytes } else { 0 };
            [when(area.access.exec), when(is_data), when(area.is_stack)]
        });
        Self { text, data, stack }
    }
}

/// /proc/PID/cmdline.
pub fn cmdline(subject: &Subject, cursor: u64, text: &mut Text) -> Part {
    let range = subject.process.image.lock().arguments;
    strings(subject, range, cursor, text)
}

/// /proc/PID/environ.
pub fn environ(subject: &Subject, cursor: u64, text: &mut Text) -> Part {
    let range = subject.process.image.lock().environment;
    strings(subject, range, cursor, text)
}

/// Appends a stretch of the program's memory as it is.
fn strings(subject: &Subject, (start, end): (u64, u64), cursor: u64, text: &mut Text) -> Part {
    let Ok(space) = space(subject) else {
        return Ok(None);
    };
    let left = end.saturating_sub(start).min(STRINGS_BYTES_MAX);
    let mut bytes = [0; STRINGS_PIECE_BYTES];
    let wanted = left.saturating_sub(cursor).min(bytes.len() as u64);
    let bytes = &mut bytes[..wanted as usize];
    let count = space
        .peek(VirtAddr(start.wrapping_add(cursor)), bytes)
        .map_err(|_| Error)?;
    text.push_bytes(&bytes[..count]);
    let next = cursor + count as u64;
    Ok((count > 0 && next < left).then_some(next))
}
