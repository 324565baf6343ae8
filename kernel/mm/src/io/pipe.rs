//! Bytes pass between a program and the rings of `core/pipe` as between it and any buffer. The
//! rings do not know programs, and those who have a ring stand above.

use super::{Sink, Source};
use crate::refusal::{Answer, Refusal};

impl ::pipe::Sink for Sink<'_> {
    type Error = Refusal;

    #[inline]
    fn remaining(&self) -> usize {
        self.remaining()
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Answer<usize> {
        Ok(self.put(bytes)?)
    }
}

impl ::pipe::Source for Source<'_> {
    type Error = Refusal;

    #[inline]
    fn remaining(&self) -> usize {
        self.remaining()
    }

    #[inline]
    fn take(&mut self, to: &mut [u8]) -> Answer<usize> {
        Ok(self.take(to)?)
    }
}
