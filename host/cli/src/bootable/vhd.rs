//! A VHD of fixed size (Microsoft, Virtual Hard Disk Image Format Specification 1.0): the raw disk, and a sector behind it
//! that says what the file is. Azure wants the disk to be whole MiB long, as ours are.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

const FOOTER_BYTES: usize = 512;
const SECTOR_BYTES: u64 = 512;
/// Where a GUID partition table has the disk's own number.
const DISK_GUID_AT: u64 = SECTOR_BYTES + 56;
const GUID_BYTES: usize = 16;
/// Where the footer has its checksum.
const CHECKSUM_AT: usize = 64;

/// Cylinders, heads and sectors of a track: the largest there are, so that nobody takes their product, which is rounded, for
/// the disk's size.
const GEOMETRY: [u8; 4] = [0xff, 0xff, 16, 255];

/// Makes the raw disk at `path` a VHD.
pub(super) fn add_footer(path: &Path) -> io::Result<()> {
    let mut file = File::options().read(true).write(true).open(path)?;
    let mut guid = [0; GUID_BYTES];
    file.seek(SeekFrom::Start(DISK_GUID_AT))?;
    file.read_exact(&mut guid)?;
    let bytes = file.seek(SeekFrom::End(0))?;
    file.write_all(&footer(bytes, guid))
}

fn footer(bytes: u64, guid: [u8; GUID_BYTES]) -> [u8; FOOTER_BYTES] {
    let mut footer = [0; FOOTER_BYTES];
    let mut at = 0;
    let mut put = |field: &[u8]| {
        footer[at..at + field.len()].copy_from_slice(field);
        at += field.len();
    };
    put(b"conectix");
    // Reserved bit of the features; version 1.0.
    put(&2u32.to_be_bytes());
    put(&0x1_0000u32.to_be_bytes());
    // A fixed disk has no further header; no time, so that the same disk is the same file.
    put(&u64::MAX.to_be_bytes());
    put(&0u32.to_be_bytes());
    // Who made it, by the name that `qemu-img` has for disks of whose geometry nothing is to be believed; for Windows' servers.
    put(b"qem2");
    put(&0x1_0000u32.to_be_bytes());
    put(b"Wi2k");
    put(&bytes.to_be_bytes());
    put(&bytes.to_be_bytes());
    put(&GEOMETRY);
    put(&2u32.to_be_bytes());
    put(&0u32.to_be_bytes());
    put(&guid);
    let sum: u32 = footer.iter().map(|&byte| u32::from(byte)).sum();
    footer[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&(!sum).to_be_bytes());
    footer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_sums_up_to_nothing() {
        let footer = footer(67 << 20, [7; GUID_BYTES]);
        assert!(footer.starts_with(b"conectix"));
        assert_eq!(footer[48..56], (67u64 << 20).to_be_bytes());
        assert_eq!(footer[60..64], 2u32.to_be_bytes());
        let said = u32::from_be_bytes(footer[64..68].try_into().unwrap());
        let sum: u32 = footer.iter().map(|&byte| u32::from(byte)).sum();
        let own: u32 = footer[64..68].iter().map(|&byte| u32::from(byte)).sum();
        assert_eq!(!(sum - own), said);
        assert_eq!(footer[68..84], [7; GUID_BYTES]);
    }
}
