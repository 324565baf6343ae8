//! A received segment, its header read once.

use mbuf::Chain;
use wire::{Seq, TcpFlags, TcpOptions, TcpView};

/// A segment with its payload.
pub(super) struct Segment {
    pub seq: Seq,
    pub ack: Seq,
    pub flags: TcpFlags,
    /// Unscaled.
    pub window: u16,
    pub options: TcpOptions,
    /// A router on the way was congested.
    pub is_marked: bool,
    pub payload: Chain,
}

impl Segment {
    /// Of a header that was checked, without its payload: that is first the whole packet, for a
    /// filter to see, until [`strip`](Self::strip). An urgent pointer is passed over: its bytes stay in line.
    #[inline]
    pub fn new(header: &TcpView<'_>, is_marked: bool) -> Self {
        Self {
            seq: header.seq(),
            ack: header.ack(),
            flags: header.flags(),
            window: header.window(),
            options: header.options(),
            is_marked,
            payload: Chain::new(),
        }
    }

    /// Takes the header off the payload; of a packet that `is_cut` the FIN comes again.
    #[inline]
    pub fn strip(&mut self, header_len: usize, is_cut: bool) {
        self.payload.advance(header_len);
        if is_cut {
            self.flags.0 &= !TcpFlags::FIN.0;
        }
    }

    #[inline]
    pub fn has(&self, flag: TcpFlags) -> bool {
        self.flags.has(flag)
    }

    /// Sequence numbers that it takes: bytes, SYN and FIN.
    #[inline]
    pub fn len(&self) -> u32 {
        let controls = u32::from(self.has(TcpFlags::SYN)) + u32::from(self.has(TcpFlags::FIN));
        self.payload.len() as u32 + controls
    }

    /// Cuts off bytes before `next` and at or behind `edge`; a FIN that is cut off
    /// behind will come again.
    #[inline]
    pub fn trim(&mut self, next: Seq, edge: Seq) {
        if self.seq.before(next) {
            self.payload.advance(next.since(self.seq) as usize);
            self.seq = next;
        }
        let room = edge.since(self.seq) as usize;
        if self.payload.len() > room {
            self.payload.truncate(room);
            self.flags.0 &= !TcpFlags::FIN.0;
        }
    }
}
