//! Shows the frames of a card that the program drives to who looks on in the machine (`/dev/portmirror`).

use std::fs::OpenOptions;
use std::io::{self, IoSlice};
use std::iter;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use base::{PAGE_BYTES, SharedMemory};
use mbuf::{Checksum, RxFrame, TxFrame};
use rustix::io::writev;

use crate::ring::RingMemory;

const DEVICE: &str = "/dev/portmirror";
/// `_IOW(0xda, 32, struct mirror)`.
const ATTACH: libc::c_ulong = 0x4018_da20;
const PLACE_BYTES: usize = 16;
/// Where the page says whether somebody looks.
const WATCHED_AT: usize = 0;

/// In front of a frame.
const OUTGOING: u8 = 1;
const PARTIAL_SUM: u8 = 2;
/// Pieces of a frame at most, with what is in front: writev(2) takes no more.
const PIECES_MAX: usize = 1024;

/// `struct mirror`.
#[repr(C)]
struct Attach {
    place: [u8; PLACE_BYTES],
    station: [u8; 6],
    mtu: u16,
}

/// A card's mirror port; its interface is gone with it.
#[derive(Debug)]
pub struct PortMirror {
    /// Before the file: it is mapped no longer than that is open.
    page: RingMemory,
    file: OwnedFd,
}

impl PortMirror {
    /// The mirror of the card at a place on the bus, `0000:00:05.0`.
    ///
    /// Errors: those of the system: no such device, no right to, a name that another interface has.
    pub fn open(place: &str, station: [u8; 6], mtu: u16) -> io::Result<Self> {
        let mut attach = Attach {
            place: [0; PLACE_BYTES],
            station,
            mtu,
        };
        // The last byte ends the name.
        let name = attach.place[..PLACE_BYTES - 1].get_mut(..place.len());
        name.ok_or(io::ErrorKind::InvalidInput)?
            .copy_from_slice(place.as_bytes());
        let mut how = OpenOptions::new();
        let how = how.read(true).write(true).custom_flags(libc::O_CLOEXEC);
        let file = OwnedFd::from(how.open(DEVICE)?);
        // SAFETY: the request reads an `Attach`.
        let made = unsafe { libc::ioctl(file.as_raw_fd(), ATTACH, &raw const attach) };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        let page = RingMemory::map(file.as_fd(), PAGE_BYTES, 0)?;
        Ok(Self { page, file })
    }

    /// Whether somebody looks.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.page.load(WATCHED_AT) != 0
    }

    /// The card has received a frame.
    #[cold]
    pub fn received(&self, frame: &RxFrame) {
        let is_partial = matches!(frame.checksum, Checksum::Partial(_));
        let flags = if is_partial { PARTIAL_SUM } else { 0 };
        self.show(&[flags, 0, 0, 0], frame.chain.slices());
    }

    /// The card is given a frame.
    #[cold]
    pub fn sent(&self, frame: &TxFrame) {
        let is_partial = frame.checksum.is_some() || frame.segment.is_some();
        let sum = if is_partial { PARTIAL_SUM } else { 0 };
        self.show(&[OUTGOING | sum, 0, 0, 0], frame.chain.slices());
    }

    /// What is not shown is missed, and the frame goes its way.
    fn show<'a>(&self, header: &'a [u8], frame: impl Iterator<Item = &'a [u8]>) {
        let pieces = iter::once(header).chain(frame);
        let pieces: Vec<_> = pieces.take(PIECES_MAX).map(IoSlice::new).collect();
        let _ = writev(&self.file, &pieces);
    }
}

impl AsFd for PortMirror {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
