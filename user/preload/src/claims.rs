//! What processes say to each other about connections that go from one to the other: messages of one size over
//! a SOCK_SEQPACKET pair, each with a descriptor or without.
//!
//! Whoever claims a connection sends a [`Kind::Claim`] with an end of a new pair, over which the rest is said, because the
//! channel itself may be several processes':
//!
//! | who claims | who has it |
//! |---|---|
//! | `Claim`: which one, the queue to which its frames are to go | |
//! | | `Offer` with a memfd of what [`posix::Host::detach`] gives, or `Refuse` with a reason of errno(3) |
//! | `Taken`, or `Refuse` | |
//! | | `Yours`: it is gone here; whether numbers of it are left here, which may claim it back |
//!
//! Those who wait at a listener are claimed alike, all at once. `Taken` says how many of them, and is the last word.
//!
//! If the pair is closed before `Yours`, the connection stays where it was. After it, whoever had it and still has numbers
//! of it claims it by the same pair. `Release` says that the last number was closed, which needs no answer.
//! `Return` goes the other way: who has it is about to end, and whoever has numbers of it is to claim it back.

use std::ffi::c_int;
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::inherited;
use crate::numbers::{self, Whose};

/// What a message says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Kind {
    Claim = 1,
    Offer = 2,
    Refuse = 3,
    Taken = 4,
    Yours = 5,
    Release = 6,
    Return = 7,
}

/// A message, but for its descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    pub kind: Kind,
    /// Which of the channel's connections.
    pub place: u32,
    /// A queue, a number of errno(3), or how many numbers are left.
    pub value: u32,
}

const MESSAGE_BYTES: usize = 12;
/// Room for the header of one descriptor.
const CONTROL_WORDS: usize = 4;

impl Message {
    /// About the only connection of a pair.
    pub fn plain(kind: Kind, value: u32) -> Self {
        Self {
            kind,
            place: 0,
            value,
        }
    }

    fn encode(self) -> [u8; MESSAGE_BYTES] {
        let words = [self.kind as u32, self.place, self.value];
        let mut bytes = [0; MESSAGE_BYTES];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let word = bytes.get(4 * at..4 * at + 4)?;
            word.try_into().ok().map(u32::from_ne_bytes)
        };
        let kind = match word(0)? {
            1 => Kind::Claim,
            2 => Kind::Offer,
            3 => Kind::Refuse,
            4 => Kind::Taken,
            5 => Kind::Yours,
            6 => Kind::Release,
            7 => Kind::Return,
            _ => return None,
        };
        let (place, value) = (word(1)?, word(2)?);
        (bytes.len() == MESSAGE_BYTES).then_some(Self { kind, place, value })
    }
}

/// An end of a pair. The program does not know of it, and execve closes it.
#[derive(Debug)]
pub struct Channel(Option<OwnedFd>);

impl Channel {
    /// A pair.
    ///
    /// Errors: those of the system.
    pub fn pair() -> io::Result<[Self; 2]> {
        let mut ends = [-1; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: there is room for two numbers.
        match unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } {
            // SAFETY: nobody has them but us.
            0 => Ok(ends.map(|end| unsafe { Self::of(end) })),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// An end that somebody else has.
    pub fn none() -> Self {
        Self(None)
    }

    /// One that was left to this program.
    pub fn adopt(number: c_int) -> Self {
        inherited::as_library(number);
        // SAFETY: whoever has left it has left it to nobody else here.
        Self((number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number) }))
    }

    /// # Safety
    /// Nobody else closes it.
    unsafe fn of(number: c_int) -> Self {
        numbers::set(number, Whose::Library);
        // SAFETY: the caller's word.
        Self(Some(unsafe { OwnedFd::from_raw_fd(number) }))
    }

    /// Its number; none once it is gone.
    pub fn number(&self) -> c_int {
        self.0.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// In a child: what the parent's numbers were forgotten with is still the library's.
    pub fn note_again(&self) {
        if let Some(end) = &self.0 {
            numbers::set(end.as_raw_fd(), Whose::Library);
        }
    }

    /// Limits how long is waited for a message.
    pub fn set_patience(&self, seconds: i64) {
        let limit = libc::timeval {
            tv_sec: seconds,
            tv_usec: 0,
        };
        // SAFETY: the value is as long as is said.
        unsafe {
            libc::syscall(
                libc::SYS_setsockopt,
                self.number(),
                libc::SOL_SOCKET,
                libc::SO_RCVTIMEO,
                &raw const limit,
                size_of_val(&limit),
            )
        };
    }

    /// Says `Return` by a channel that another thread listens on.
    pub fn say_return(number: c_int) {
        // Who would hear it may be gone.
        send(number, Message::plain(Kind::Return, 0), None).ok();
    }

    /// Errors: those of the system, whoever hears it.
    pub fn say(&self, message: Message, descriptor: Option<c_int>) -> io::Result<()> {
        send(self.number(), message, descriptor)
    }

    /// The next message, and what came with it.
    ///
    /// Errors: `UnexpectedEof` when nobody is left who could say anything, `InvalidData` for what is none, those of the
    /// system.
    pub fn hear(&self) -> io::Result<(Message, Option<OwnedFd>)> {
        let mut bytes = [0_u8; MESSAGE_BYTES + 1];
        let mut control = [0_u64; CONTROL_WORDS];
        let mut piece = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        let mut header = header_of(&mut piece, &mut control);
        let heard = loop {
            // SAFETY: as above.
            let heard = unsafe {
                libc::syscall(
                    libc::SYS_recvmsg,
                    self.number(),
                    &raw mut header,
                    libc::MSG_CMSG_CLOEXEC,
                )
            };
            match usize::try_from(heard) {
                Ok(heard) => break heard,
                Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(io::Error::last_os_error()),
            }
        };
        let descriptor = attached(&header);
        if heard == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let message = bytes.get(..heard).and_then(Message::decode);
        let message = message.ok_or(io::ErrorKind::InvalidData)?;
        Ok((message, descriptor))
    }

    /// What came with a [`Kind::Claim`].
    pub fn from_descriptor(descriptor: OwnedFd) -> Self {
        numbers::set(descriptor.as_raw_fd(), Whose::Library);
        Self(Some(descriptor))
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if let Some(end) = &self.0 {
            // Who gets the number next is not us.
            numbers::set(end.as_raw_fd(), Whose::Kernel);
        }
        self.0 = None;
    }
}

fn send(number: c_int, message: Message, descriptor: Option<c_int>) -> io::Result<()> {
    let mut bytes = message.encode();
    let mut control = [0_u64; CONTROL_WORDS];
    let mut piece = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let mut header = header_of(&mut piece, &mut control);
    match descriptor {
        Some(descriptor) => attach(&mut header, descriptor),
        None => header.msg_controllen = 0,
    }
    // SAFETY: the header names memory of ours, which lives.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_sendmsg,
            number,
            &raw const header,
            libc::MSG_NOSIGNAL,
        )
    };
    match sent {
        sent if sent >= 0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn header_of(piece: &mut libc::iovec, control: &mut [u64; CONTROL_WORDS]) -> libc::msghdr {
    // SAFETY: all zeros is a message without anything.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_iov = piece;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(control) as _;
    header
}

fn attach(header: &mut libc::msghdr, descriptor: c_int) {
    // SAFETY: there is room for a header and a number, aligned for it.
    unsafe {
        header.msg_controllen = libc::CMSG_SPACE(size_of::<c_int>() as u32) as _;
        let first = libc::CMSG_FIRSTHDR(header);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as _;
        ptr::write_unaligned(libc::CMSG_DATA(first).cast(), descriptor);
    }
}

/// The first of the descriptors that came; there is room for one or two, and the second is closed.
fn attached(header: &libc::msghdr) -> Option<OwnedFd> {
    // SAFETY: the kernel has written the header's control messages.
    let first = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
    if (first.cmsg_level, first.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
        return None;
    }
    let len = first.cmsg_len as usize;
    // SAFETY: no memory is passed.
    let header_len = unsafe { libc::CMSG_LEN(0) } as usize;
    let count = len.saturating_sub(header_len) / size_of::<c_int>();
    let mut all = (0..count).map(|index| {
        // SAFETY: so many numbers are behind the header, and they are ours alone.
        unsafe {
            let at = libc::CMSG_DATA(first).cast::<c_int>().add(index);
            OwnedFd::from_raw_fd(ptr::read_unaligned(at))
        }
    });
    let wanted = all.next();
    all.for_each(drop);
    wanted
}

/// Bytes as a file without a name.
///
/// Errors: those of the system.
pub fn as_file(bytes: &[u8]) -> io::Result<OwnedFd> {
    // SAFETY: the name ends with a zero.
    let number = unsafe { libc::memfd_create(c"sietch-connection".as_ptr(), libc::MFD_CLOEXEC) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: nobody has it but us.
    let mut file = unsafe { File::from_raw_fd(number) };
    file.write_all(bytes)?;
    Ok(file.into())
}

/// Bytes at most, of one connection: its buffers, whatever they are set to.
const BYTES_MAX: u64 = 1 << 26;

/// What is in such a file.
///
/// Errors: those of the system.
pub fn bytes_of(file: OwnedFd) -> io::Result<Vec<u8>> {
    let mut file = File::from(file);
    io::Seek::rewind(&mut file)?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}
