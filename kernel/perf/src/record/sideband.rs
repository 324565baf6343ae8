//! Side-band records, of what happens besides samples: names, threads that come and go, mapped files.

use base::VirtAddr;
use mm::{AreaReport, Label};
use sync::Result;
use task::Thread;

use super::Record;
use crate::attributes::AttrBits;
use vfs::device_parts;
use vfs::file::OpenFile;

const MMAP: u32 = 1;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const MMAP2: u32 = 10;

/// What maps, among the bits that go with the kind: a program.
const MODE_USER: u16 = 2;
/// A name that came with a program.
const COMM_EXEC: u16 = 1 << 13;

/// A thread, or its maker or parent: the numbers of the process and of the thread.
pub(crate) type Ids = (u32, u32);

/// The thread has the name.
pub(crate) fn name(thread: &Thread, is_exec: bool) -> Result<Record> {
    let misc = if is_exec { COMM_EXEC } else { 0 };
    let mut record = Record::new(COMM, misc)?;
    record.pair(thread.process.id(), thread.id())?;
    let name = *thread.name.lock();
    let len = name.iter().position(|&byte| byte == 0);
    record.text(name.get(..len.unwrap_or(name.len())).unwrap_or_default())?;
    Ok(record)
}

/// A thread has been made.
pub(crate) fn fork(own: Ids, maker: Ids) -> Result<Record> {
    life(FORK, own, maker)
}

/// A thread ends.
pub(crate) fn exit(own: Ids, parent: Ids) -> Result<Record> {
    life(EXIT, own, parent)
}

fn life(kind: u32, own: Ids, parent: Ids) -> Result<Record> {
    let mut record = Record::new(kind, 0)?;
    record.pair(own.0, parent.0)?;
    record.pair(own.1, parent.1)?;
    record.push(mach::time::now().as_nanos())?;
    Ok(record)
}

/// A part of the thread's address space that can be executed.
pub(crate) fn mapping(hears: AttrBits, thread: &Thread, area: &AreaReport) -> Result<Record> {
    let tells_more = hears.contains(AttrBits::MMAP2);
    let mut record = Record::new(if tells_more { MMAP2 } else { MMAP }, MODE_USER)?;
    record.pair(thread.process.id(), thread.id())?;
    let VirtAddr(start) = area.range.start;
    record.push(start)?;
    record.push(area.range.end.0 - start)?;
    record.push(area.offset)?;
    if tells_more {
        file_facts(&mut record, area)?;
    }
    match &area.label {
        Label::File(mapped) => {
            match OpenFile::of_mapping(mapped).and_then(|open| open.path.as_ref()) {
                Some(path) => record.text(&path.name_from(&vfs::root()))?,
                None => record.text(b"//anon")?,
            }
        }
        Label::Other(name) => record.text(name.as_bytes())?,
        _ => record.text(b"//anon")?,
    }
    Ok(record)
}

fn file_facts(record: &mut Record, area: &AreaReport) -> Result<()> {
    let file = match &area.label {
        Label::File(mapped) => OpenFile::of_mapping(mapped).and_then(|open| open.metadata().ok()),
        _ => None,
    };
    let (major, minor) = device_parts(file.as_ref().map_or(0, |file| file.device));
    record.pair(major, minor)?;
    record.push(file.map_or(0, |file| file.number))?;
    record.push(0)?;
    let access = area.access;
    let bits = u32::from(access.read) | u32::from(access.write) << 1 | u32::from(access.exec) << 2;
    record.pair(bits, if area.traits.shared { 1 } else { 2 })
}
