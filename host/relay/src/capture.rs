//! What passed at both ends, as pcapng (draft-ietf-opsawg-pcapng), for Wireshark.
//!
//! The left end is interface 0, the right end interface 1. A frame that came in from an
//! end is inbound there, one that is handed to an end outbound, and each carries a
//! comment that says what the relay did. The file has a limit: what passes
//! behind it is counted and not written.

use std::io::{self, Write};
use std::time::Duration;

use capture::pcapng::{Block, Direction, Interface, Packet};

use crate::Side;
use crate::counts::DropReason;
use crate::fate::{Copy, Fate};
use crate::path::{Arrival, Flight};

/// Ethernet in the list of link types (tcpdump.org).
const LINK_TYPE_ETHERNET: u16 = 1;
/// Room for the longest datagram that comes in, a comment, and the block's own fields.
const BLOCK_BYTES_MAX: usize = (1 << 16) + 1024;

/// Something that happened to a frame.
#[derive(Clone, Copy, Debug)]
pub enum Notice<'a> {
    /// It came in from an end.
    Accepted(Side, Arrival, &'a [u8]),
    /// A copy was handed to an end.
    Delivered(Side, &'a Flight),
    /// A copy arrived where nobody listened.
    Unreceived(Side, &'a Flight),
}

/// A file under way.
pub struct Capture<W> {
    file: W,
    /// The time of day at the relay's start.
    epoch: Duration,
    bytes_left: u64,
    unwritten: u64,
    block: Box<[u8]>,
}

impl<W: Write> Capture<W> {
    /// Starts a file with at most `bytes_max` bytes of frames; `epoch` is the time of day at
    /// the relay's start, since 1970.
    pub fn new(file: W, epoch: Duration, bytes_max: u64) -> io::Result<Self> {
        let mut capture = Self {
            file,
            epoch,
            bytes_left: u64::MAX,
            unwritten: 0,
            block: vec![0; BLOCK_BYTES_MAX].into(),
        };
        let application = "sietch relay";
        capture.write(&Block::Section { application })?;
        for name in ["left", "right"] {
            capture.write(&Block::Interface(Interface {
                link_type: LINK_TYPE_ETHERNET,
                keep_max: 0,
                name: Some(name),
                filter: None,
            }))?;
        }
        capture.bytes_left = bytes_max;
        Ok(capture)
    }

    /// Notes what happened at `now`, since the relay's start.
    pub fn note(&mut self, now: Duration, notice: Notice<'_>) -> io::Result<()> {
        let (side, direction, bytes) = match notice {
            Notice::Accepted(side, _, bytes) => (side, Direction::In, bytes),
            Notice::Delivered(side, flight) | Notice::Unreceived(side, flight) => {
                (side, Direction::Out, &flight.bytes[..])
            }
        };
        self.write(&Block::Packet(Packet {
            interface: side as u32,
            time: (self.epoch + now).into(),
            len: bytes.len() as u32,
            parts: &[bytes],
            direction: Some(direction),
            lost: None,
            comment: Some(&comment(notice)),
        }))
    }

    /// Writes a block, or counts it where the file's limit leaves no room.
    fn write(&mut self, block: &Block<'_>) -> io::Result<()> {
        let len = block.emit(&mut self.block);
        match len.ok().filter(|&len| len as u64 <= self.bytes_left) {
            Some(len) => {
                self.bytes_left -= len as u64;
                self.file.write_all(&self.block[..len])
            }
            None => {
                self.unwritten += 1;
                Ok(())
            }
        }
    }

    /// Completes the file; says how many frames it had no room for.
    pub fn finish(mut self) -> io::Result<u64> {
        self.file.flush()?;
        Ok(self.unwritten)
    }
}

fn comment(notice: Notice<'_>) -> String {
    match notice {
        Notice::Accepted(_, Arrival { number, fate }, _) => {
            format!("frame {number}: {}", sentence(fate))
        }
        Notice::Delivered(_, flight) => match flight.wrong_bit {
            Some(bit) => format!("frame {}, with bit {bit} wrong", flight.number),
            None => format!("frame {}", flight.number),
        },
        Notice::Unreceived(_, flight) => {
            format!(
                "frame {}, dropped: {}",
                flight.number,
                DropReason::NoReceiver
            )
        }
    }
}

fn sentence(fate: Result<Fate, DropReason>) -> String {
    match fate {
        Err(reason) => format!("dropped: {reason}"),
        Ok(Fate::Lost) => format!("dropped: {}", DropReason::Loss),
        Ok(Fate::Arrives {
            first,
            second: None,
        }) => copy_sentence(first),
        Ok(Fate::Arrives {
            first,
            second: Some(second),
        }) => {
            format!(
                "doubled: {}; {}",
                copy_sentence(first),
                copy_sentence(second)
            )
        }
    }
}

fn copy_sentence(copy: Copy) -> String {
    let mut sentence = "passed on".to_string();
    if !copy.detour.is_zero() {
        sentence += &format!(", {} us later", copy.detour.as_micros());
    }
    if copy.wrong_bit.is_some() {
        sentence += ", damaged";
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fate::Weather;
    use crate::path::Path;

    /// Splits a file into its blocks, each checked against its own two lengths.
    fn blocks(mut file: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let word = |at: &[u8]| u32::from_le_bytes(at[..4].try_into().expect("four bytes"));
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let len = word(&file[4..]) as usize;
            assert_eq!(len % 4, 0);
            assert_eq!(word(&file[len - 4..]) as usize, len);
            blocks.push((word(file), file[8..len - 4].to_vec()));
            file = &file[len..];
        }
        blocks
    }

    fn capture(bytes_max: u64) -> (Vec<(u32, Vec<u8>)>, u64) {
        let mut file = Vec::new();
        let mut capture =
            Capture::new(&mut file, Duration::from_secs(1_000), bytes_max).expect("memory");
        let lossy = Weather {
            loss_ppm: 1_000_000,
            ..Weather::FAIR
        };
        for weather in [Weather::FAIR, lossy] {
            let mut path = Path::new(1, 0, weather);
            let arrival = path.accept(Duration::ZERO, b"hello");
            let notice = Notice::Accepted(Side::Right, arrival, b"hello");
            capture
                .note(Duration::from_nanos(7), notice)
                .expect("memory");
        }
        let unwritten = capture.finish().expect("memory");
        (blocks(&file), unwritten)
    }

    #[test]
    fn a_capture_is_made_of_whole_blocks_with_reasons_beside_frames() {
        let (blocks, unwritten) = capture(1 << 20);
        let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
        // A section, two interfaces, two packets.
        let wanted = [0x0a0d_0d0a, 1, 1, 6, 6];
        assert_eq!((&kinds[..], unwritten), (&wanted[..], 0));
        let says = |at: usize, words: &str| {
            blocks[at]
                .1
                .windows(words.len())
                .any(|window| window == words.as_bytes())
        };
        assert!(says(3, "frame 0: passed on") && says(4, "frame 0: dropped: lost by chance"));
        let nanos = 1_000_000_000_007_u64;
        assert_eq!(blocks[3].1[4..8], ((nanos >> 32) as u32).to_le_bytes());
        assert_eq!(blocks[3].1[8..12], (nanos as u32).to_le_bytes());
    }

    #[test]
    fn a_capture_ends_at_its_limit_and_says_so() {
        let (blocks, unwritten) = capture(100);
        assert_eq!((blocks.len(), unwritten), (4, 1));
    }
}
