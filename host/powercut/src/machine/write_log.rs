//! The record of a disk's writes as QEMU's `blklogwrites` makes it: the format of Linux' `dm-log-writes`.
//!
//! A sector with a header, then for each event a sector with a head (four numbers of 64 bits,
//! little-endian: first sector, sectors, flags, bytes) and its data. A machine that was killed has not
//! counted its last events in the header, so reading ends where there is no head.

use std::path::Path;

use crate::cuts::Event;
use crate::medium::sectors;

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const SECTOR: usize = 512;
const FLUSH: u64 = 1;
const FORCED: u64 = 2;
const DISCARD: u64 = 4;
const MARK: u64 = 8;

/// All events of the file.
pub fn read(file: &Path) -> Result<Vec<Event>, String> {
    let log = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    parse(&log)
}

fn parse(log: &[u8]) -> Result<Vec<Event>, String> {
    let header = log.get(..SECTOR).ok_or("a log without a header")?;
    if number(header, 0) != MAGIC || number(header, 1) != VERSION {
        return Err("this is no log of writes".into());
    }
    let (mut events, mut at) = (Vec::new(), SECTOR);
    while let Some(head) = log.get(at..at + SECTOR) {
        let [first, count, flags] = [0, 1, 2].map(|field| number(head, field));
        if (first, count, flags) == (0, 0, 0) {
            break;
        }
        at += SECTOR;
        let has_data = flags & (DISCARD | MARK) == 0;
        let len = if has_data { count as usize * SECTOR } else { 0 };
        let Some(data) = log.get(at..at + len) else {
            break;
        };
        at += len;
        if flags & FLUSH != 0 {
            events.push(Event::Flush);
        }
        if len != 0 {
            events.push(Event::Write {
                pieces: sectors(first, data).collect(),
                is_forced: flags & FORCED != 0,
            });
        }
    }
    Ok(events)
}

fn number(bytes: &[u8], field: usize) -> u64 {
    let eight = bytes[field * 8..field * 8 + 8].try_into();
    u64::from_le_bytes(eight.expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(numbers: [u64; 4]) -> Vec<u8> {
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|each| each.to_le_bytes()).collect();
        bytes.resize(SECTOR, 0);
        bytes
    }

    #[test]
    fn writes_flushes_and_discards_are_read_until_the_log_ends() {
        let mut log = head([MAGIC, VERSION, 0, SECTOR as u64]);
        log.extend(head([7, 2, 0, 1024]));
        log.extend([1; 1024]);
        log.extend(head([9, 4, DISCARD, 0]));
        log.extend(head([0, 0, FLUSH, 0]));
        log.extend(head([3, 1, FORCED, 512]));
        log.extend([2; 512]);
        log.extend(vec![0; 4096]);
        let events = parse(&log).unwrap();
        assert!(matches!(
            &events[..],
            [
                Event::Write { pieces, is_forced: false },
                Event::Flush,
                Event::Write { is_forced: true, .. },
            ] if pieces.len() == 2 && pieces[1].0 == 8
        ));
    }
}
