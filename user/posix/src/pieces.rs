//! The program's memory in pieces (`struct iovec`), filled or emptied from the front.

use std::io::{IoSlice, IoSliceMut};

/// Where received bytes go.
#[derive(Debug)]
pub struct Scatter<'a, 'b> {
    pieces: &'a mut [IoSliceMut<'b>],
    /// Bytes of the first piece that are filled.
    filled: usize,
    done: usize,
    room: usize,
    /// What is put is counted, and not kept.
    is_unseen: bool,
}

impl<'a, 'b> Scatter<'a, 'b> {
    /// Into empty pieces.
    pub fn new(pieces: &'a mut [IoSliceMut<'b>]) -> Self {
        let room = pieces.iter().map(|piece| piece.len()).sum();
        Self {
            pieces,
            filled: 0,
            done: 0,
            room,
            is_unseen: false,
        }
    }

    /// Nowhere: so many bytes are thrown away.
    pub fn unseen(room: usize) -> Self {
        Self {
            pieces: Default::default(),
            filled: 0,
            done: 0,
            room,
            is_unseen: true,
        }
    }

    /// Keeps nothing of what comes from now on.
    pub fn throw_away(&mut self) {
        *self = Self {
            done: self.done,
            ..Self::unseen(self.room)
        };
    }

    /// Bytes that still fit.
    #[inline]
    pub fn room(&self) -> usize {
        self.room
    }

    /// Bytes that are in.
    #[inline]
    pub fn done(&self) -> usize {
        self.done
    }

    /// Takes as many of `bytes` as fit; how many.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> usize {
        let mut left = bytes;
        while !left.is_empty()
            && let Some(first) = self.pieces.first_mut()
        {
            let space = &mut first[self.filled..];
            let count = space.len().min(left.len());
            space[..count].copy_from_slice(&left[..count]);
            left = &left[count..];
            self.filled += count;
            if self.filled == first.len() {
                self.next_piece();
            }
        }
        let put = match self.is_unseen {
            true => bytes.len().min(self.room),
            false => bytes.len() - left.len(),
        };
        self.done += put;
        self.room -= put;
        put
    }

    fn next_piece(&mut self) {
        let pieces = std::mem::take(&mut self.pieces);
        self.pieces = pieces.get_mut(1..).unwrap_or_default();
        self.filled = 0;
    }
}

/// Where sent bytes come from.
#[derive(Debug)]
pub struct Gather<'a, 'b> {
    pieces: &'a [IoSlice<'b>],
    /// Bytes of the first piece that are taken.
    taken: usize,
    done: usize,
    left: usize,
}

impl<'a, 'b> Gather<'a, 'b> {
    /// From all of the pieces.
    pub fn new(pieces: &'a [IoSlice<'b>]) -> Self {
        Self {
            pieces,
            taken: 0,
            done: 0,
            left: pieces.iter().map(|piece| piece.len()).sum(),
        }
    }

    /// Bytes that are left.
    #[inline]
    pub fn left(&self) -> usize {
        self.left
    }

    /// Bytes that were taken.
    #[inline]
    pub fn done(&self) -> usize {
        self.done
    }

    /// Fills `space` as far as there are bytes; how many.
    #[inline]
    pub fn take(&mut self, space: &mut [u8]) -> usize {
        let mut count = 0;
        while count < space.len()
            && let Some((first, rest)) = self.pieces.split_first()
        {
            let bytes = &first[self.taken..];
            let step = bytes.len().min(space.len() - count);
            space[count..count + step].copy_from_slice(&bytes[..step]);
            count += step;
            self.taken += step;
            if self.taken == first.len() {
                (self.pieces, self.taken) = (rest, 0);
            }
        }
        self.done += count;
        self.left -= count;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_thrown_away_is_counted_up_to_the_room() {
        let mut bytes = [0; 8];
        let mut pieces = [IoSliceMut::new(&mut bytes)];
        let mut to = Scatter::new(&mut pieces);
        assert_eq!(to.put(&[1; 3]), 3);
        to.throw_away();
        assert_eq!((to.put(&[2; 4]), to.put(&[3; 4])), (4, 1));
        assert_eq!((to.done(), to.room()), (8, 0));
        assert_eq!(bytes, [1, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(Scatter::unseen(5).put(&[4; 9]), 5);
    }

    #[test]
    fn pieces_of_any_size_are_filled_and_emptied_in_order() {
        let bytes: Vec<u8> = (0..20).collect();
        for step in 1..7 {
            let (mut a, mut b, mut c) = ([0; 3], [0; 0], [0; 14]);
            let mut pieces = [&mut a[..], &mut b, &mut c].map(IoSliceMut::new);
            let mut to = Scatter::new(&mut pieces);
            let put: usize = bytes.chunks(step).map(|chunk| to.put(chunk)).sum();
            assert_eq!((put, to.done(), to.room()), (17, 17, 0));
            assert_eq!([&a[..], &c].concat(), bytes[..17]);

            let pieces = [&a[..], &b, &c].map(IoSlice::new);
            let mut from = Gather::new(&pieces);
            let mut got: Vec<u8> = Vec::new();
            while from.left() != 0 {
                let mut space = vec![0; step];
                let count = from.take(&mut space);
                got.extend(&space[..count]);
            }
            assert_eq!(got, bytes[..17]);
        }
    }
}
