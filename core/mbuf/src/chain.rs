//! An ordered list of slices: the bytes of one frame, or of a stretch of a stream.
//!
//! Nearly every frame has one or two parts, so that many live inside the chain itself;
//! a third moves them to the heap. Where it is known how many parts there will be, the
//! heap is asked once. No part is ever empty, so that iteration never yields an empty
//! slice and the number of parts is bounded by the number of bytes. Those are less than 4 GiB:
//! who queues bytes has a limit far below.

use core::fmt;
use core::iter;

use crate::long::Long;
use crate::mbuf::Mbuf;
use crate::pool::{BLOCK_BYTES, Pool};

/// The bytes of several [`Mbuf`]s in order.
#[derive(Clone, Default)]
pub struct Chain {
    len: u32,
    /// How many parts there are, which is asked for more often than it changes.
    count: u32,
    parts: Parts,
}

#[derive(Clone)]
enum Parts {
    /// The second is filled only if the first is.
    Few([Option<Mbuf>; 2]),
    Many(Long),
}

impl Default for Parts {
    fn default() -> Self {
        Self::Few([None, None])
    }
}

impl Chain {
    /// No bytes.
    pub const fn new() -> Self {
        Self {
            len: 0,
            count: 0,
            parts: Parts::Few([None, None]),
        }
    }

    /// Makes room for so many parts more, so that adding them does not ask the heap again.
    #[inline]
    pub fn reserve(&mut self, more: usize) {
        if more > 0 && self.parts() + more > 2 {
            self.reserve_heap(more);
        }
    }

    fn reserve_heap(&mut self, more: usize) {
        let held = self.parts();
        match &mut self.parts {
            Parts::Few(few) => {
                let mut parts = Long::with_capacity(held + more);
                parts.extend(few.iter_mut().filter_map(Option::take));
                self.parts = Parts::Many(parts);
            }
            Parts::Many(parts) => parts.reserve(more),
        }
    }

    /// Bytes in all parts.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many parts there are.
    #[inline]
    pub fn parts(&self) -> usize {
        self.count as usize
    }

    /// Memory that the chain keeps busy in a pool, in bytes, without a look at its parts: a
    /// block for each, or its bytes if they are lent in larger pieces.
    #[inline]
    pub fn memory(&self) -> usize {
        (self.parts() * BLOCK_BYTES).max(self.len())
    }

    /// Adds a part at the end; an empty one is dropped.
    #[inline]
    pub fn push_back(&mut self, part: Mbuf) {
        if !part.is_empty() {
            self.len += part.len() as u32;
            self.add_back(part);
        }
    }

    /// Adds a part whose bytes count already.
    #[inline]
    fn add_back(&mut self, part: Mbuf) {
        self.count += 1;
        self.store_back(part);
    }

    #[inline]
    fn store_back(&mut self, part: Mbuf) {
        match &mut self.parts {
            Parts::Few([first @ None, _]) => *first = Some(part),
            Parts::Few([_, second @ None]) => *second = Some(part),
            Parts::Few(_) => {
                self.reserve_heap(1);
                self.store_back(part);
            }
            Parts::Many(parts) => parts.push_back(part),
        }
    }

    /// Adds a part at the front; an empty one is dropped.
    pub fn push_front(&mut self, part: Mbuf) {
        if !part.is_empty() {
            self.insert_front(part);
        }
    }

    fn insert_front(&mut self, part: Mbuf) {
        self.len += part.len() as u32;
        self.count += 1;
        match &mut self.parts {
            Parts::Few([first @ None, _]) => *first = Some(part),
            Parts::Few([first, second @ None]) => {
                *second = first.replace(part);
            }
            Parts::Few(_) => {
                self.reserve_heap(1);
                if let Parts::Many(parts) = &mut self.parts {
                    parts.push_front(part);
                }
            }
            Parts::Many(parts) => parts.push_front(part),
        }
    }

    /// Takes the first part. A heap list that runs empty is given back.
    pub fn pop_front(&mut self) -> Option<Mbuf> {
        let part = match &mut self.parts {
            Parts::Few([first, second]) => core::mem::replace(first, second.take()),
            Parts::Many(parts) => {
                let part = parts.pop_front();
                if parts.is_empty() {
                    self.parts = Parts::default();
                }
                part
            }
        }?;
        self.len -= part.len() as u32;
        self.count -= 1;
        Some(part)
    }

    /// The first part.
    #[inline]
    pub fn front(&self) -> Option<&Mbuf> {
        match &self.parts {
            Parts::Few([first, _]) => first.as_ref(),
            Parts::Many(parts) => parts.front(),
        }
    }

    fn front_mut(&mut self) -> Option<&mut Mbuf> {
        match &mut self.parts {
            Parts::Few([first, _]) => first.as_mut(),
            Parts::Many(parts) => parts.front_mut(),
        }
    }

    fn back(&self) -> Option<&Mbuf> {
        match &self.parts {
            Parts::Few([first, None]) => first.as_ref(),
            Parts::Few([_, second]) => second.as_ref(),
            Parts::Many(parts) => parts.back(),
        }
    }

    fn back_mut(&mut self) -> Option<&mut Mbuf> {
        match &mut self.parts {
            Parts::Few([first, None]) => first.as_mut(),
            Parts::Few([_, second]) => second.as_mut(),
            Parts::Many(parts) => parts.back_mut(),
        }
    }

    /// The parts in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Mbuf> {
        (0..self.parts()).map_while(|index| self.part(index))
    }

    #[inline]
    fn part(&self, index: usize) -> Option<&Mbuf> {
        match &self.parts {
            Parts::Few(few) => few.get(index)?.as_ref(),
            Parts::Many(parts) => parts.get(index),
        }
    }

    /// The bytes in order, one slice a part.
    pub fn slices(&self) -> Slices<'_> {
        Slices {
            chain: self,
            index: 0,
        }
    }

    /// All bytes, if they lie in at most one part: the common case of a received frame.
    #[inline]
    pub fn as_single(&self) -> Option<&[u8]> {
        match &self.parts {
            Parts::Few([None, _]) => Some(&[]),
            Parts::Few([Some(only), None]) => Some(only.bytes()),
            _ => None,
        }
    }

    /// All bytes, writable, if they lie in one part that nobody shares.
    pub fn as_single_mut(&mut self) -> Option<&mut [u8]> {
        match &mut self.parts {
            Parts::Few([Some(only), None]) => only.bytes_mut(),
            _ => None,
        }
    }

    /// Puts `bytes` of writable header in front of the first part, which may be shared;
    /// `None` if the chain is empty or its first part has no such headroom.
    #[inline]
    pub fn prepend(&mut self, bytes: usize) -> Option<&mut [u8]> {
        let front = match &mut self.parts {
            Parts::Few([first, _]) => first.as_mut(),
            Parts::Many(parts) => parts.front_mut(),
        };
        let header = front?.prepend(bytes)?;
        self.len += bytes as u32;
        Some(header)
    }

    /// Puts `buffer`, which is empty, in front and `bytes` of writable header into its
    /// headroom; `None` if it has less.
    #[inline]
    pub fn prepend_in(&mut self, bytes: usize, buffer: Mbuf) -> Option<&mut [u8]> {
        if bytes == 0 || buffer.headroom() < bytes {
            return None;
        }
        self.insert_front(buffer);
        self.prepend(bytes)
    }

    /// Bytes that [`append_in_place`](Self::append_in_place) would take.
    #[inline]
    pub fn back_room(&self) -> usize {
        self.back().map_or(0, Mbuf::tailroom)
    }

    /// Copies what fits into the last part's tailroom; returns how many bytes did.
    pub fn append_in_place(&mut self, bytes: &[u8]) -> usize {
        let copied = self.back_mut().map_or(0, |back| back.append(bytes));
        self.len += copied as u32;
        copied
    }

    /// Lets `fill` write behind the last part, into at most `limit` bytes of its
    /// tailroom; `fill` says how many it has written.
    #[inline]
    pub fn fill_in_place(&mut self, limit: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> usize {
        let Some(back) = self.back_mut() else {
            return 0;
        };
        let old = back.len();
        let room = limit.min(back.tailroom());
        let written = match back.extend(room) {
            Some(space) => fill(space).min(room),
            None => 0,
        };
        back.shrink_to(old + written);
        self.len += written as u32;
        written
    }

    /// Drops up to `bytes` from the front.
    #[inline]
    pub fn advance(&mut self, bytes: usize) {
        if bytes >= self.len() {
            *self = Self::new();
            return;
        }
        match self.front_mut() {
            // A header in front of what it carries.
            Some(front) if bytes < front.len() => {
                front.advance(bytes);
                self.len -= bytes as u32;
            }
            _ => self.drop_parts(bytes),
        }
    }

    fn drop_parts(&mut self, bytes: usize) {
        let mut left = bytes.min(self.len());
        while left > 0 {
            let Some(front) = self.front_mut() else {
                return;
            };
            let part = front.len();
            if part > left {
                front.advance(left);
                self.len -= left as u32;
                return;
            }
            left -= part;
            drop(self.pop_front());
        }
    }

    /// Cuts the first `bytes` off into a chain of their own (all, if there are fewer).
    #[inline]
    pub fn split_to(&mut self, bytes: usize) -> Self {
        if bytes >= self.len() {
            return core::mem::take(self);
        }
        self.split_parts(bytes)
    }

    fn split_parts(&mut self, bytes: usize) -> Self {
        let (whole, whole_len) = self.whole_parts(bytes);
        let mut front = self.take_parts(whole);
        front.len = whole_len as u32;
        self.len -= front.len;
        let missing = bytes - whole_len;
        if missing > 0
            && let Some(part) = self.front_mut()
        {
            front.push_back(part.split_to(missing));
            self.len -= missing as u32;
        }
        front
    }

    /// How many parts lie in the first `bytes` wholly, and their bytes.
    fn whole_parts(&self, bytes: usize) -> (usize, usize) {
        if bytes >= self.len() {
            return (self.parts(), self.len());
        }
        let (mut count, mut len) = (0, 0);
        for part in self.iter() {
            if len + part.len() > bytes {
                break;
            }
            (count, len) = (count + 1, len + part.len());
        }
        (count, len)
    }

    /// Moves the first `count` parts to a chain of their own, without a look at the bytes: by
    /// moving the fewer of those that go and those that stay.
    fn take_parts(&mut self, count: usize) -> Self {
        let mut front = Self::new();
        match &mut self.parts {
            Parts::Many(parts) if count > parts.len() / 2 => {
                let rest = parts.split_off(count);
                front.parts = core::mem::replace(&mut self.parts, Parts::Many(rest));
                front.count = count as u32;
            }
            Parts::Many(parts) => {
                front.reserve(count + 1);
                parts.drain(..count).for_each(|part| front.add_back(part));
            }
            Parts::Few([first, second]) => {
                for part in [&mut *first, &mut *second].into_iter().take(count) {
                    part.take()
                        .into_iter()
                        .for_each(|part| front.add_back(part));
                }
                if first.is_none() {
                    *first = second.take();
                }
            }
        }
        self.count -= front.count;
        front
    }

    /// Keeps the first `len` bytes.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            self.cut_to(len);
        }
    }

    fn cut_to(&mut self, len: usize) {
        if let Parts::Few([Some(only), None]) = &mut self.parts
            && len > 0
        {
            only.truncate(len);
            self.len = only.len() as u32;
        } else {
            *self = self.split_to(len);
        }
    }

    /// Moves all parts of `other` behind the parts of this chain.
    #[inline]
    pub fn append(&mut self, other: Self) {
        match self.is_empty() {
            true => *self = other,
            false => self.append_parts(other),
        }
    }

    fn append_parts(&mut self, mut other: Self) {
        if let (Parts::Many(parts), Parts::Many(more)) = (&mut self.parts, &mut other.parts) {
            parts.append(more);
            self.len += core::mem::take(&mut other.len);
            self.count += core::mem::take(&mut other.count);
            return;
        }
        self.reserve(other.parts());
        while let Some(part) = other.pop_front() {
            self.push_back(part);
        }
    }

    /// Moves the first `bytes` (all, if there are fewer) behind the parts of `to`.
    #[inline]
    pub fn move_front(&mut self, bytes: usize, to: &mut Self) {
        if to.is_empty() && bytes >= self.len() {
            self.move_all(to);
        } else {
            to.append(self.split_to(bytes));
        }
    }

    /// Moves all to `to`, which is empty: a single part, as most chains have, without the rest.
    #[inline]
    fn move_all(&mut self, to: &mut Self) {
        match (&mut self.parts, &mut to.parts) {
            (Parts::Few([from @ Some(_), None]), Parts::Few([place @ None, None])) => {
                *place = from.take();
                to.len = core::mem::take(&mut self.len);
                to.count = core::mem::take(&mut self.count);
            }
            _ => core::mem::swap(self, to),
        }
    }

    /// Shares `len` bytes from `offset` on (fewer, if the chain ends before).
    pub fn share(&self, offset: usize, len: usize) -> Self {
        let mut shared = Self::new();
        self.share_into(&mut shared, offset, len);
        shared
    }

    fn share_into(&self, shared: &mut Self, offset: usize, len: usize) {
        let (mut skip, mut left) = (offset, len);
        for part in self.iter() {
            if left == 0 {
                break;
            }
            if skip >= part.len() {
                skip -= part.len();
                continue;
            }
            let mut slice = part.clone();
            slice.advance(skip);
            slice.truncate(left);
            left -= slice.len();
            skip = 0;
            shared.push_back(slice);
        }
    }

    /// Shares the first `len` bytes like [`share`](Self::share), handing over the
    /// headroom of the first part so that headers can be written there.
    #[inline(always)]
    pub fn share_front_with_headroom(&mut self, len: usize) -> Self {
        let Some(front) = self.front_mut() else {
            return Self::new();
        };
        let mut first = front.share_with_headroom();
        first.truncate(len);
        let done = first.len();
        let mut shared = Self::from(first);
        if done < len {
            self.share_rest(&mut shared, done, len);
        }
        shared
    }

    fn share_rest(&self, shared: &mut Self, done: usize, len: usize) {
        shared.reserve(self.whole_parts(len).0);
        self.share_into(shared, done, len - done);
    }

    /// Copies bytes from `offset` on into `to`; returns how many there were.
    pub fn copy_to_slice(&self, offset: usize, to: &mut [u8]) -> usize {
        let (mut skip, mut done) = (offset, 0);
        for bytes in self.slices() {
            if skip >= bytes.len() {
                skip -= bytes.len();
                continue;
            }
            let from = &bytes[skip..];
            let count = from.len().min(to.len() - done);
            to[done..done + count].copy_from_slice(&from[..count]);
            (skip, done) = (0, done + count);
            if done == to.len() {
                break;
            }
        }
        done
    }

    /// The bytes copied into as few buffers as they fit, for a device that takes few parts;
    /// `None` without buffers.
    pub fn gathered(&self, pool: &dyn Pool) -> Option<Self> {
        let mut gathered = Self::new();
        while gathered.len < self.len {
            let mut buffer = pool.alloc()?;
            let len = buffer.tailroom().min(self.len() - gathered.len());
            self.copy_to_slice(gathered.len(), buffer.extend(len)?);
            gathered.push_back(buffer);
        }
        Some(gathered)
    }

    /// Memory that the parts keep busy, in bytes, however little of it is data.
    pub fn footprint(&self) -> usize {
        self.iter().map(Mbuf::footprint).sum()
    }
}

/// The byte slices of a [`Chain`].
pub struct Slices<'a> {
    chain: &'a Chain,
    index: usize,
}

impl<'a> Iterator for Slices<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let part = self.chain.part(self.index)?;
        self.index += 1;
        Some(part.bytes())
    }
}

impl From<Mbuf> for Chain {
    #[inline]
    fn from(part: Mbuf) -> Self {
        if part.is_empty() {
            return Self::new();
        }
        Self {
            len: part.len,
            count: 1,
            parts: Parts::Few([Some(part), None]),
        }
    }
}

impl iter::Extend<Mbuf> for Chain {
    fn extend<T: IntoIterator<Item = Mbuf>>(&mut self, parts: T) {
        parts.into_iter().for_each(|part| self.push_back(part));
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain({} bytes in {} parts)", self.len, self.parts())
    }
}
