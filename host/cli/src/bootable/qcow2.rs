//! A disk in QEMU's format (QEMU's `docs/interop/qcow2.txt`, version 3), written once: clusters that are zero are not in the
//! file.
//!
//! ```text
//! cluster 0    the header
//! 1            the table of blocks of reference counts
//! 2 and on     those blocks: each cluster of the file is used once
//! then         the first table (L1), which says where the second ones are
//! then         the second tables (L2), which say where each cluster of the disk is
//! then         the clusters of the disk that are not zero
//! ```

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

const CLUSTER_BITS: u32 = 16;
const CLUSTER_BYTES: usize = 1 << CLUSTER_BITS;
/// Entries of a table of one cluster.
const ENTRIES: usize = CLUSTER_BYTES / 8;
/// Reference counts in a block: of 16 bits.
const COUNTS: u64 = CLUSTER_BYTES as u64 / 2;
const HEADER_BYTES: u32 = 104;
/// A table's entry: what it leads to is used by nobody else.
const IS_OWN: u64 = 1 << 63;

/// Writes the raw disk at `from` to `to`.
pub(super) fn write(from: &Path, to: &Path) -> io::Result<()> {
    let disk = File::open(from)?;
    let bytes = disk.metadata()?.len();
    let used = used_clusters(disk)?;
    let places = Places::of(&used).ok_or(io::ErrorKind::FileTooLarge)?;
    let mut out = BufWriter::new(File::create(to)?);
    out.write_all(&padded(header(bytes, &places)))?;
    let blocks = places.first_block..places.l1;
    out.write_all(&padded(words(blocks.map(offset))))?;
    write_counts(&mut out, &places)?;
    let tables = places.l1 + 1..places.first_data;
    out.write_all(&padded(words(tables.map(|table| offset(table) | IS_OWN))))?;
    let mut next = places.first_data;
    for table in used.chunks(ENTRIES) {
        let entries = table.iter().map(|is_used| {
            let entry = offset(next) | IS_OWN;
            next += u64::from(*is_used);
            if *is_used { entry } else { 0 }
        });
        out.write_all(&padded(words(entries)))?;
    }
    copy_used(File::open(from)?, &used, &mut out)?;
    out.flush()
}

/// Where the parts of the file begin, in clusters.
struct Places {
    first_block: u64,
    l1: u64,
    first_data: u64,
    end: u64,
}

impl Places {
    /// `None` for disks that need more than one cluster for a table of tables, from 4 TiB on.
    fn of(used: &[bool]) -> Option<Self> {
        let tables = used.len().div_ceil(ENTRIES);
        let data = used.iter().filter(|is_used| **is_used).count() as u64;
        let others = 3 + tables as u64 + data;
        let mut blocks = 1;
        while blocks * COUNTS < others + blocks {
            blocks += 1;
        }
        let l1 = 2 + blocks;
        let first_data = l1 + 1 + tables as u64;
        let fits = tables <= ENTRIES && blocks <= ENTRIES as u64;
        fits.then_some(Self {
            first_block: 2,
            l1,
            first_data,
            end: first_data + data,
        })
    }
}

fn header(bytes: u64, places: &Places) -> Vec<u8> {
    let mut header = Vec::new();
    let tables = (places.first_data - places.l1 - 1) as u32;
    header.extend(b"QFI\xfb");
    header.extend(3u32.to_be_bytes());
    // No file behind this one.
    header.extend([0; 12]);
    header.extend(CLUSTER_BITS.to_be_bytes());
    header.extend(bytes.to_be_bytes());
    // Not encrypted.
    header.extend(0u32.to_be_bytes());
    header.extend(tables.to_be_bytes());
    header.extend(offset(places.l1).to_be_bytes());
    header.extend(offset(1).to_be_bytes());
    header.extend(1u32.to_be_bytes());
    // No snapshots, and no features.
    header.extend([0; 12 + 24]);
    // Counts of 2^4 bits.
    header.extend(4u32.to_be_bytes());
    header.extend(HEADER_BYTES.to_be_bytes());
    header
}

/// Each cluster of the file is used once; what is behind its end is not used.
fn write_counts(out: &mut impl Write, places: &Places) -> io::Result<()> {
    for block in 0..places.l1 - places.first_block {
        let used = places.end.saturating_sub(block * COUNTS).min(COUNTS);
        let counts = std::iter::repeat_n(1u16.to_be_bytes(), used as usize);
        out.write_all(&padded(counts.flatten().collect()))?;
    }
    Ok(())
}

/// Which clusters of the disk hold more than zeros.
fn used_clusters(mut disk: File) -> io::Result<Vec<bool>> {
    let zeros = vec![0; CLUSTER_BYTES];
    let mut used = Vec::new();
    while let Some(cluster) = next_cluster(&mut disk)? {
        used.push(cluster != zeros);
    }
    Ok(used)
}

fn copy_used(mut disk: File, used: &[bool], out: &mut impl Write) -> io::Result<()> {
    let mut used = used.iter();
    while let Some(cluster) = next_cluster(&mut disk)? {
        if used.next() == Some(&true) {
            out.write_all(&cluster)?;
        }
    }
    Ok(())
}

/// The last one is filled up with zeros.
fn next_cluster(disk: &mut File) -> io::Result<Option<Vec<u8>>> {
    let mut cluster = Vec::with_capacity(CLUSTER_BYTES);
    let bytes = disk.take(CLUSTER_BYTES as u64).read_to_end(&mut cluster)?;
    Ok((bytes > 0).then(|| padded(cluster)))
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(CLUSTER_BYTES), 0);
    bytes
}

fn words(entries: impl Iterator<Item = u64>) -> Vec<u8> {
    entries.flat_map(u64::to_be_bytes).collect()
}

fn offset(cluster: u64) -> u64 {
    cluster << CLUSTER_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(file: &[u8], at: u64) -> u64 {
        let at = at as usize;
        u64::from_be_bytes(file[at..at + 8].try_into().expect("eight bytes"))
    }

    /// A cluster of the disk, as the tables lead to it.
    fn read(file: &[u8], cluster: usize) -> Vec<u8> {
        let place = |entry: u64| entry & !IS_OWN;
        let l2 = place(word(file, word(file, 40) + 8 * (cluster / ENTRIES) as u64));
        match place(word(file, l2 + 8 * (cluster % ENTRIES) as u64)) {
            0 => vec![0; CLUSTER_BYTES],
            at => file[at as usize..][..CLUSTER_BYTES].to_vec(),
        }
    }

    #[test]
    fn what_is_written_is_read_by_the_tables_and_zeros_take_no_room() {
        let name = format!("sietch-qcow2-{}", std::process::id());
        let (from, to) = (
            std::env::temp_dir().join(format!("{name}.raw")),
            std::env::temp_dir().join(name),
        );
        let clusters = ENTRIES + 3;
        let disk = File::create(&from).expect("made");
        disk.set_len((clusters * CLUSTER_BYTES) as u64)
            .expect("sized");
        let written = [0, 2, ENTRIES + 1];
        for cluster in written {
            let at = (cluster * CLUSTER_BYTES + 5) as u64;
            std::os::unix::fs::FileExt::write_all_at(&disk, &[cluster as u8 + 1], at)
                .expect("written");
        }
        write(&from, &to).expect("converted");
        let file = std::fs::read(&to).expect("read");
        for cluster in [0, 1, 2, ENTRIES - 1, ENTRIES, ENTRIES + 1, ENTRIES + 2] {
            let mut wanted = vec![0; CLUSTER_BYTES];
            if written.contains(&cluster) {
                wanted[5] = cluster as u8 + 1;
            }
            assert!(read(&file, cluster) == wanted, "cluster {cluster}");
        }
        // Header, two kinds of counts' tables, one first table, two second ones.
        assert_eq!(file.len(), (6 + written.len()) * CLUSTER_BYTES);
        let count = |cluster: usize| file[2 * CLUSTER_BYTES + 2 * cluster + 1];
        assert_eq!([count(0), count(8), count(9)], [1, 1, 0]);
        for path in [from, to] {
            std::fs::remove_file(path).expect("removed");
        }
    }
}
