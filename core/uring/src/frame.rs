//! How a message lies in a buffer that its receiver lent, if it is one of many
//! (io_uring_prep_recvmsg_multishot(3)).
//!
//! The receiver's `struct msghdr` says only how much room its name and its control messages have. The buffer has
//! a `struct io_uring_recvmsg_out`, room for the name, room for the control messages, and then the message.

use crate::decode::Invalid;

/// Bytes of a `struct io_uring_recvmsg_out`.
const HEAD_BYTES: usize = 16;

/// Where the parts are: bytes from the buffer's beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Where the control messages are, and the name ends.
    pub control: usize,
    /// Where the message is, and the control messages end.
    pub payload: usize,
}

/// What is told of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told {
    /// Bytes of its name, whether they all had room or not.
    pub name_len: u32,
    /// Bytes of its control messages.
    pub control_len: u32,
    /// Bytes of the message itself; with MSG_TRUNC all that it had.
    pub payload_len: u32,
    /// MSG_*.
    pub flags: u32,
}

impl Frame {
    /// Where the name is.
    pub const NAME: usize = HEAD_BYTES;

    /// By the words of a `struct msghdr` up to the length of its control messages.
    ///
    /// Errors: lengths that no buffer has, more than one range of memory.
    pub fn new([_, name_len, _, ranges, _, control_len]: [u64; 6]) -> Result<Self, Invalid> {
        // The length of the name is a C `int`, padding above it.
        let name_len = i32::try_from(name_len as u32).map_err(|_| Invalid)?;
        let control_len = u32::try_from(control_len).map_err(|_| Invalid)?;
        let control = HEAD_BYTES + name_len.unsigned_abs() as usize;
        match ranges {
            0 | 1 => Ok(Self {
                control,
                payload: control + control_len as usize,
            }),
            _ => Err(Invalid),
        }
    }
}

impl Told {
    /// The `struct io_uring_recvmsg_out`.
    pub fn words(&self) -> [u32; 4] {
        [
            self.name_len,
            self.control_len,
            self.payload_len,
            self.flags,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_lengths_that_none_has_are_refused() {
        let padded = 0xdead_0000_0000_0010;
        let frame = Frame::new([0, padded, 0, 1, 0, 24]);
        let (control, payload) = (32, 56);
        assert_eq!(frame, Ok(Frame { control, payload }));
        for lengths in [
            [0, 0x8000_0000, 0, 1, 0, 0],
            [0, 0, 0, 2, 0, 0],
            [0, 0, 0, 0, 0, u64::MAX],
        ] {
            assert_eq!(Frame::new(lengths), Err(Invalid));
        }
    }
}
