//! What ioctl(2) asks of disks (include/uapi/linux/fs.h, hdreg.h).

use base::VirtAddr;
use block::{Operation, SECTOR_BYTES, SectorRange};
use cred::Capability;
use mm::user;
use sync::{Error, Result};
use vfs::file::OpenFile;

use crate::file::DiskFile;
use crate::scan;

const HDIO_GETGEO: u32 = 0x0301;
const BLKROGET: u32 = 0x125e;
const BLKRRPART: u32 = 0x125f;
const BLKGETSIZE: u32 = 0x1260;
const BLKFLSBUF: u32 = 0x1261;
const BLKRASET: u32 = 0x1262;
const BLKRAGET: u32 = 0x1263;
const BLKSECTGET: u32 = 0x1267;
const BLKSSZGET: u32 = 0x1268;
const BLKDISCARD: u32 = 0x1277;
const BLKIOMIN: u32 = 0x1278;
const BLKIOOPT: u32 = 0x1279;
const BLKALIGNOFF: u32 = 0x127a;
const BLKPBSZGET: u32 = 0x127b;
const BLKDISCARDZEROES: u32 = 0x127c;
const BLKROTATIONAL: u32 = 0x127e;
const BLKZEROOUT: u32 = 0x127f;
const BLKBSZGET: u32 = 0x8008_1270;
const BLKBSZSET: u32 = 0x4008_1271;
const BLKGETSIZE64: u32 = 0x8008_1272;
const BLKGETDISKSEQ: u32 = 0x8008_1280;

/// Heads and sectors of the disk that has never turned.
const HEADS: u32 = 255;
const SECTORS: u32 = 63;
/// Zeroes that are written as bytes go out in pieces of so many.
const ZEROES: [u8; 4096] = [0; 4096];

pub(crate) fn answer(
    file: &DiskFile,
    open: &OpenFile,
    request: u32,
    argument: u64,
) -> Result<usize> {
    let limits = file.disk.limits();
    let at = VirtAddr(argument);
    match request {
        BLKGETSIZE64 => user::write(at, size(file)),
        BLKGETSIZE => user::write(at, size(file) / SECTOR_BYTES),
        BLKSSZGET => user::write(at, limits.block_bytes),
        BLKPBSZGET => user::write(at, limits.physical_bytes),
        BLKBSZGET => user::write(at, 4096u32),
        BLKIOMIN => user::write(at, limits.io_min()),
        BLKIOOPT => user::write(at, limits.optimal_bytes),
        BLKALIGNOFF => user::write(at, limits.alignment_offset),
        BLKROGET => user::write(at, u32::from(limits.is_read_only)),
        BLKSECTGET => {
            let sectors = u64::from(limits.command_bytes_max) / SECTOR_BYTES;
            user::write(at, sectors.min(u16::MAX.into()) as u16)
        }
        BLKROTATIONAL => user::write(at, 0u16),
        BLKDISCARDZEROES => user::write(at, 0u32),
        BLKRAGET => user::write(at, 0u64),
        // Nothing is read ahead, and blocks have their size.
        BLKRASET | BLKBSZSET => Ok(()),
        BLKGETDISKSEQ => user::write(at, file.disk.number() as u64 + 1),
        HDIO_GETGEO => user::write(at, geometry(file)),
        BLKFLSBUF => require_admin().and_then(|()| file.disk.flush()),
        BLKRRPART => require_admin().and_then(|()| match file.partition {
            Some(_) => Err(Error::Invalid),
            None => scan::read_again(&file.disk),
        }),
        BLKDISCARD => {
            let sectors = range(file, open, at)?;
            file.disk.command(Operation::Discard, sectors).map(|_| ())
        }
        BLKZEROOUT => zero_out(file, open, range(file, open, at)?),
        _ => return crate::nvme::answer(&file.disk, request, at),
    }?;
    Ok(0)
}

/// The size now: a disk may have grown.
fn size(file: &DiskFile) -> u64 {
    file.disk.refresh();
    file.size()
}

pub(crate) fn require_admin() -> Result<()> {
    let credentials = cred::credentials().get();
    match credentials.require(Capability::SysAdmin) {
        Ok(()) => Ok(()),
        Err(_) => Err(Error::AccessDenied),
    }
}

/// `struct hd_geometry`: heads, sectors, cylinders, first sector.
fn geometry(file: &DiskFile) -> [u64; 2] {
    let cylinders = size(file) / SECTOR_BYTES / u64::from(HEADS * SECTORS);
    let cylinders = cylinders.min(u16::MAX.into());
    let first = file.sectors().first;
    [
        u64::from(HEADS) | u64::from(SECTORS) << 8 | cylinders << 16,
        first,
    ]
}

/// The sectors of the disk that two numbers of the program's mean: start and length in bytes.
fn range(file: &DiskFile, open: &OpenFile, at: VirtAddr) -> Result<SectorRange> {
    if !open.is_writable() {
        return Err(Error::BadFile);
    }
    let [start, len]: [u64; 2] = user::read(at)?;
    let block = u64::from(file.disk.limits().block_bytes);
    let end = start.checked_add(len).ok_or(Error::Invalid)?;
    let is_whole = start.is_multiple_of(block) && len.is_multiple_of(block);
    if !is_whole || len == 0 || end > file.size() {
        return Err(Error::Invalid);
    }
    Ok(SectorRange {
        first: file.sectors().first + start / SECTOR_BYTES,
        count: len / SECTOR_BYTES,
    })
}

/// The device's own zeroes, or written ones where it has none.
fn zero_out(file: &DiskFile, open: &OpenFile, sectors: SectorRange) -> Result<()> {
    let operation = Operation::WriteZeroes { may_unmap: false };
    match file.disk.command(operation, sectors) {
        Err(Error::Unsupported) => write_zeroes(file, open, sectors),
        done => done.map(|_| ()),
    }
}

fn write_zeroes(file: &DiskFile, _open: &OpenFile, sectors: SectorRange) -> Result<()> {
    let (mut at, mut left) = (sectors.first * SECTOR_BYTES, sectors.bytes());
    while left != 0 {
        let len = left.min(ZEROES.len() as u64);
        let mut from = mm::io::Source::kernel(&ZEROES);
        from.cut_to(len as usize);
        let durability = block::Durability::Volatile;
        crate::buffered::write(&file.disk, (at, len), durability, &mut from)?;
        (at, left) = (at + len, left - len);
        sched::resched_point();
    }
    Ok(())
}
