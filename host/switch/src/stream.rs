//! Frames on a stream, as QEMU's `-netdev stream` has them: four bytes with the length, most significant first, and
//! the frame.

use std::io::{self, Read, Write};

/// The longest frame: what segmentation may leave together.
pub const FRAME_BYTES_MAX: usize = 65_536 + 18;
/// What may wait for one receiver.
pub const QUEUE_BYTES_MAX: usize = 1 << 20;
const LENGTH_BYTES: usize = 4;
/// As much is read at a time.
const READ_BYTES: usize = 1 << 16;

/// Bytes that came, of which the last frame may not be complete.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    /// Where the first frame begins that was not taken.
    start: usize,
}

/// A length that no frame has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLength;

impl Inbox {
    /// Reads once from `source`; how much, of which nothing is the end.
    pub fn fill(&mut self, source: &mut impl Read) -> io::Result<usize> {
        self.bytes.drain(..self.start);
        self.start = 0;
        let old = self.bytes.len();
        self.bytes.resize(old + READ_BYTES, 0);
        let read = source.read(self.bytes.get_mut(old..).unwrap_or_default());
        self.bytes.truncate(old + *read.as_ref().unwrap_or(&0));
        read
    }

    /// The next complete frame.
    pub fn take(&mut self) -> Result<Option<&[u8]>, BadLength> {
        let waiting = self.bytes.get(self.start..).unwrap_or_default();
        let Some((length, rest)) = waiting.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length == 0 || length > FRAME_BYTES_MAX {
            return Err(BadLength);
        }
        let frame = rest.get(..length);
        if frame.is_some() {
            self.start += LENGTH_BYTES + length;
        }
        Ok(frame)
    }
}

/// Frames that wait for a receiver.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// How many of them the receiver has.
    sent: usize,
}

impl Outbox {
    /// Adds a frame; false if there is no room for it.
    pub fn push(&mut self, frame: &[u8]) -> bool {
        let has_room = self.len() + LENGTH_BYTES + frame.len() <= QUEUE_BYTES_MAX;
        if has_room {
            let length = frame.len() as u32;
            self.bytes.extend_from_slice(&length.to_be_bytes());
            self.bytes.extend_from_slice(frame);
        }
        has_room
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives the receiver as much as it takes now.
    pub fn flush(&mut self, sink: &mut impl Write) -> io::Result<()> {
        while !self.is_empty() {
            match sink.write(self.bytes.get(self.sent..).unwrap_or_default()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => self.sent += taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // Moved only when it is worth it.
        if self.sent >= self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sink that takes few bytes at a time, and then none.
    struct Slow(Vec<u8>, usize);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.1 == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let taken = bytes.len().min(3).min(self.1);
            self.1 -= taken;
            self.0.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn frames_come_whole_however_the_stream_was_cut() {
        let mut outbox = Outbox::default();
        let frames: Vec<Vec<u8>> = (1..40u8).map(|n| vec![n; usize::from(n) * 5]).collect();
        for frame in &frames {
            assert!(outbox.push(frame));
        }
        let (mut sink, mut inbox, mut come) = (Slow(Vec::new(), 0), Inbox::default(), Vec::new());
        while !outbox.is_empty() {
            sink.1 = 101;
            outbox.flush(&mut sink).expect("it takes what it takes");
            let mut piece = io::Cursor::new(std::mem::take(&mut sink.0));
            inbox.fill(&mut piece).expect("read");
            while let Some(frame) = inbox.take().expect("a length") {
                come.push(frame.to_vec());
            }
        }
        assert_eq!(come, frames);
    }

    #[test]
    fn a_queue_is_bounded_and_a_length_that_cannot_be_is_named() {
        let mut outbox = Outbox::default();
        let frame = [0; 60_000];
        let taken = (0..100).filter(|_| outbox.push(&frame)).count();
        assert!(taken * 60_000 < QUEUE_BYTES_MAX && taken == 17, "{taken}");
        for length in [0, FRAME_BYTES_MAX as u32 + 1, u32::MAX] {
            let mut inbox = Inbox::default();
            let mut bytes = io::Cursor::new(length.to_be_bytes());
            inbox.fill(&mut bytes).expect("read");
            assert_eq!(inbox.take(), Err(BadLength));
        }
    }
}
