//! What passed at both ends, as pcapng (draft-ietf-opsawg-pcapng), for Wireshark.
//!
//! The left end is interface 0, the right end interface 1. A frame that came in from an
//! end is inbound there, one that is handed to an end outbound, and each carries a
//! comment that says what the relay did. The file has a limit: what passes
//! behind it is counted and not written.

use std::io::{self, Write};
use std::time::Duration;

use crate::Side;
use crate::counts::DropReason;
use crate::fate::{Copy, Fate};
use crate::path::{Arrival, Flight};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const LINK_TYPE_ETHERNET: u16 = 1;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const INTERFACE_NAME: u16 = 2;
const PACKET_FLAGS: u16 = 2;
const TIME_RESOLUTION: u16 = 9;
const NANOSECONDS: u8 = 9;

const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

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
}

impl<W: Write> Capture<W> {
    /// Starts a file of at most `bytes_max` bytes; `epoch` is the time of day at the relay's
    /// start, since 1970.
    pub fn new(mut file: W, epoch: Duration, bytes_max: u64) -> io::Result<Self> {
        let mut section = Vec::new();
        section.extend(BYTE_ORDER.to_le_bytes());
        section.extend([1, 0, 0, 0]);
        // The section's length is not known yet.
        section.extend(u64::MAX.to_le_bytes());
        write_block(&mut file, SECTION_HEADER, &section)?;
        for name in ["left", "right"] {
            let mut interface = Vec::new();
            interface.extend(LINK_TYPE_ETHERNET.to_le_bytes());
            interface.extend([0; 6]);
            push_option(&mut interface, INTERFACE_NAME, name.as_bytes());
            push_option(&mut interface, TIME_RESOLUTION, &[NANOSECONDS]);
            push_option(&mut interface, END_OF_OPTIONS, &[]);
            write_block(&mut file, INTERFACE, &interface)?;
        }
        Ok(Self {
            file,
            epoch,
            bytes_left: bytes_max,
            unwritten: 0,
        })
    }

    /// Notes what happened at `now`, since the relay's start.
    pub fn note(&mut self, now: Duration, notice: Notice<'_>) -> io::Result<()> {
        let (side, direction, bytes) = match notice {
            Notice::Accepted(side, _, bytes) => (side, INBOUND, bytes),
            Notice::Delivered(side, flight) | Notice::Unreceived(side, flight) => {
                (side, OUTBOUND, &flight.bytes[..])
            }
        };
        let block = packet(side, self.epoch + now, bytes, &comment(notice), direction);
        if block.len() as u64 > self.bytes_left {
            self.unwritten += 1;
            return Ok(());
        }
        self.bytes_left -= block.len() as u64;
        write_block(&mut self.file, ENHANCED_PACKET, &block)
    }

    /// Completes the file; says how many frames it had no room for.
    pub fn finish(mut self) -> io::Result<u64> {
        self.file.flush()?;
        Ok(self.unwritten)
    }
}

fn packet(side: Side, time: Duration, bytes: &[u8], comment: &str, direction: u32) -> Vec<u8> {
    let nanos = time.as_nanos() as u64;
    let len = bytes.len() as u32;
    let mut block = Vec::with_capacity(bytes.len() + comment.len() + 48);
    for word in [side as u32, (nanos >> 32) as u32, nanos as u32, len, len] {
        block.extend(word.to_le_bytes());
    }
    block.extend(bytes);
    pad(&mut block);
    push_option(&mut block, COMMENT, comment.as_bytes());
    push_option(&mut block, PACKET_FLAGS, &direction.to_le_bytes());
    push_option(&mut block, END_OF_OPTIONS, &[]);
    block
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

fn push_option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    block.extend(code.to_le_bytes());
    block.extend((value.len() as u16).to_le_bytes());
    block.extend(value);
    pad(block);
}

fn pad(block: &mut Vec<u8>) {
    block.resize(block.len().next_multiple_of(4), 0);
}

fn write_block(file: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let len = (body.len() + 12) as u32;
    file.write_all(&kind.to_le_bytes())?;
    file.write_all(&len.to_le_bytes())?;
    file.write_all(body)?;
    file.write_all(&len.to_le_bytes())
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
        let wanted = [
            SECTION_HEADER,
            INTERFACE,
            INTERFACE,
            ENHANCED_PACKET,
            ENHANCED_PACKET,
        ];
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
