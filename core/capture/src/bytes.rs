//! Little-endian fields in a row, bounded.

/// Appends to a buffer; what does not fit is remembered.
pub(crate) struct Fields<'a> {
    to: &'a mut [u8],
    len: usize,
    fits: bool,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(to: &'a mut [u8]) -> Self {
        Self {
            to,
            len: 0,
            fits: true,
        }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let rest = self.to.get_mut(self.len..).unwrap_or_default();
        match rest.get_mut(..bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            None => self.fits = false,
        }
        self
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Zeros up to the next multiple of four.
    pub(crate) fn pad(&mut self) -> &mut Self {
        let padding = self.len.next_multiple_of(4) - self.len;
        self.bytes(&[0; 3][..padding])
    }

    /// Overwrites four bytes.
    pub(crate) fn patch(&mut self, at: usize, value: u32) -> &mut Self {
        let room = self.to.get_mut(at..).and_then(<[u8]>::first_chunk_mut);
        match room {
            Some(room) => *room = value.to_le_bytes(),
            None => self.fits = false,
        }
        self
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes in all, if all fitted.
    pub(crate) fn finish(&self) -> Option<usize> {
        self.fits.then_some(self.len)
    }
}
