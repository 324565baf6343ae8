//! Ends of one look at a queue, on their way to who waits for them.
//!
//! Most ends of a ring's requests say the same: it went well. They are told several at once to the ring whose they are.

use alloc::sync::Arc;

use block::{Completion, PageEnd, Sink};

use crate::bio::{Carried, Pool};
use crate::failure::settle;
use crate::loan::{Owner, Taker, WHOLE};

/// Ends that are told at once.
const AT_ONCE: usize = 16;

/// See the module. All are told when it is dropped.
pub(crate) struct Ends<'a> {
    idle: &'a Pool,
    /// Whose the tags are.
    taker: Option<Arc<dyn Taker>>,
    tags: [u64; AT_ONCE],
    count: usize,
}

impl<'a> Ends<'a> {
    #[inline]
    pub(crate) fn new(idle: &'a Pool) -> Self {
        Self {
            idle,
            taker: None,
            tags: [0; AT_ONCE],
            count: 0,
        }
    }

    #[inline]
    fn has_room_for(&self, taker: &Arc<dyn Taker>) -> bool {
        let is_same = |other: &Arc<dyn Taker>| Arc::ptr_eq(other, taker);
        self.count < AT_ONCE && self.taker.as_ref().is_some_and(is_same)
    }

    #[inline(never)]
    fn tell(&mut self) {
        let tags = self.tags.get(..self.count).unwrap_or(&[]);
        if let Some(taker) = self.taker.take() {
            taker.done(tags);
        }
        self.count = 0;
    }
}

impl Sink<Carried> for Ends<'_> {
    #[inline]
    fn ended(&mut self, completion: Completion<Carried>) {
        self.idle.hand_out(completion);
    }

    #[inline]
    fn page_ended(&mut self, end: PageEnd<Owner>) {
        let Owner { taker, tag } = end.owner;
        if let Err(error) = settle(end.result) {
            return taker.ended([tag, WHOLE], Err(error));
        }
        if !self.has_room_for(&taker) {
            self.tell();
            self.taker = Some(taker);
        }
        if let Some(place) = self.tags.get_mut(self.count) {
            *place = tag;
            self.count += 1;
        }
    }
}

impl Drop for Ends<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.count != 0 {
            self.tell();
        }
    }
}
