//! From requests to a device's commands.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use hal::Span;

use super::under_way::{Phase, UnderWay};
use crate::channel::{Channel, Command, SubmitError, Tag};
use crate::limits::Limits;
use crate::order::Order;
use crate::request::{Failure, Keep, Operation, SectorRange};
use crate::split;

/// How far a request got.
pub(super) enum Advance {
    /// The device has all that it can be told now.
    UnderWay,
    /// The device takes no more; something of the request waits.
    NoRoom,
    /// It is over.
    Over,
}

/// How far sending got.
enum Sent {
    /// Nothing of it waits.
    All,
    /// The device takes no more.
    Full,
}

/// The device's end of a queue.
pub(super) struct Wire<C> {
    pub channel: C,
    pub limits: Limits,
    /// By the limits ([`split::takes_pages`]).
    pub takes_pages: bool,
    /// Of the number of a block's first sector, what is 0.
    pub inside_block: u64,
    pub order: Arc<Order>,
    /// The request of each command that the device has.
    owners: Box<[Option<u16>]>,
    /// The memory of the command that is just being made.
    pieces: Vec<Span>,
    pub is_broken: bool,
    /// Commands so far.
    pub commands: u64,
}

impl<C: Channel> Wire<C> {
    pub fn new(channel: C, limits: Limits, order: Arc<Order>) -> Self {
        let owners = vec![None; usize::from(channel.depth())].into_boxed_slice();
        Self {
            channel,
            limits,
            takes_pages: split::takes_pages(&limits),
            inside_block: limits.inside_block(),
            order,
            owners,
            pieces: Vec::with_capacity(limits.segments_max.into()),
            is_broken: false,
            commands: 0,
        }
    }

    /// The device was stopped: it has no command any more.
    pub fn stop(&mut self) {
        self.channel.retire();
        self.owners.fill(None);
        self.is_broken = true;
    }

    /// The device was started with a new channel.
    pub fn restart(&mut self, channel: C) {
        self.owners = vec![None; usize::from(channel.depth())].into_boxed_slice();
        self.channel = channel;
        self.is_broken = false;
    }

    #[inline]
    pub fn publish(&mut self) {
        self.channel.publish();
    }

    /// The request whose command has ended.
    #[inline]
    pub fn take_owner(&mut self, tag: Tag) -> Option<u16> {
        self.owners.get_mut(usize::from(tag.0))?.take()
    }

    /// Sends more of a request, and sees whether it is over.
    pub fn advance<K: Keep>(&mut self, index: u16, way: &mut UnderWay<K>) -> Advance {
        loop {
            if let Sent::Full = self.send(index, way) {
                way.is_waiting = true;
                return Advance::NoRoom;
            }
            if way.commands != 0 || self.is_broken {
                return Advance::UnderWay;
            }
            match way.next_phase(&self.limits, &self.order) {
                Some(phase) => way.phase = phase,
                None => return Advance::Over,
            }
        }
    }

    /// Sends commands until all are sent or the device takes no more.
    fn send<K: Keep>(&mut self, index: u16, way: &mut UnderWay<K>) -> Sent {
        while way.failure.is_none() && !self.is_broken {
            let before = way.cursor;
            let told = match way.phase {
                Phase::Transfer => {
                    way.begin(&self.order);
                    match self.send_part(index, way) {
                        Ok(Some(told)) => told,
                        Ok(None) => return Sent::All,
                        Err(failure) => {
                            way.failure = Some(failure);
                            return Sent::All;
                        }
                    }
                }
                Phase::Flush => {
                    way.phase = Phase::Flushing(self.order.flush_begins());
                    self.tell(index, Operation::Flush, SectorRange::default(), &[])
                }
                Phase::Flushing(_) => return Sent::All,
            };
            match told {
                Ok(()) => {
                    way.commands += 1;
                    if way.cursor.sectors == way.request.sectors.count {
                        return Sent::All;
                    }
                }
                Err(error) => {
                    way.unsend(before);
                    match error {
                        SubmitError::Full => return Sent::Full,
                        SubmitError::TooLarge => way.failure = Some(Failure::Misaligned),
                        SubmitError::Broken => self.is_broken = true,
                    }
                }
            }
        }
        Sent::All
    }

    /// Sends the next part of a transfer; `None` at its end.
    fn send_part<K: Keep>(
        &mut self,
        index: u16,
        way: &mut UnderWay<K>,
    ) -> Result<Option<Result<(), SubmitError>>, Failure> {
        let operation = way.told_operation(&self.limits);
        let spans = way.request.keep.spans();
        let range = way.request.sectors;
        if way.cursor.is_at_start() && split::is_one_command(&self.limits, range, spans) {
            way.cursor.sectors = range.count;
            return Ok(Some(self.tell(index, operation, range, spans)));
        }
        let mut pieces = core::mem::take(&mut self.pieces);
        let next = split::next(
            &self.limits,
            way.request.operation,
            range,
            spans,
            &mut way.cursor,
            &mut pieces,
        );
        let told = next.map(|part| {
            let spans = match operation.has_data() {
                true => &pieces[..],
                false => &[],
            };
            part.map(|part| self.tell(index, operation, part, spans))
        });
        self.pieces = pieces;
        told
    }

    fn tell(
        &mut self,
        index: u16,
        operation: Operation,
        sectors: SectorRange,
        spans: &[Span],
    ) -> Result<(), SubmitError> {
        let command = Command {
            operation,
            sectors,
            spans,
        };
        let tag = self.channel.submit(&command)?;
        let owner = self.owners.get_mut(usize::from(tag.0));
        *owner.ok_or(SubmitError::Broken)? = Some(index);
        self.commands += 1;
        Ok(())
    }
}
