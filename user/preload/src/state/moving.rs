//! Connections that another process is about to have (`lending`).
//!
//! From [`begin_move`](Held::begin_move) on a connection stands still, and its numbers are [`Whose::Inherited`]: who uses one waits
//! until it has gone or goes on here. It is known by itself and not by its numbers, which the program may close and copy
//! meanwhile.

use std::ffi::c_int;
use std::io;
use std::sync::Arc;

use posix::Open;

use super::children::{Loan, RETURN, claim, set_all};
use super::{Held, State};
use crate::claims::{Channel, Kind, Message};
use crate::numbers::{self, Whose};

impl Held {
    /// A connection stands still, because another process is about to have it. Who uses it waits until that is over.
    pub fn begin_move(&mut self, open: &Arc<Open>) {
        let numbers = self.host().numbers_of(open);
        numbers::inherit_by(claim);
        set_all(&numbers, Whose::Inherited);
        self.0.moving.push(open.clone());
    }

    /// It goes on here.
    pub fn end_move(&mut self, open: &Arc<Open>) {
        let numbers = self.host().numbers_of(open);
        self.0.moving.retain(|other| !Arc::ptr_eq(other, open));
        set_all(&numbers, Whose::Socket);
    }

    /// It is the other's; with numbers of it here it may be claimed back.
    ///
    /// Errors: the other is gone and has not heard of it, so it is still ours.
    pub fn hand_over(&mut self, open: &Arc<Open>, answer: Channel) -> io::Result<()> {
        let left = self.host().numbers_of(open);
        answer.say(Message::plain(Kind::Yours, left.len() as u32), None)?;
        self.host().forget_moved(open);
        self.0.moving.retain(|other| !Arc::ptr_eq(other, open));
        if !left.is_empty() {
            let channel = Arc::new(answer);
            if let Some(wait) = RETURN.get() {
                wait(channel.clone());
            }
            self.0.loans.push(Loan::new(channel, 0, left));
        }
        Ok(())
    }
}

impl State {
    /// Whether a number's connection stands still, because another process is about to have it.
    pub(super) fn is_moving(&mut self, number: c_int) -> bool {
        if self.moving.is_empty() {
            return false;
        }
        let open = self
            .host()
            .and_then(|host| host.socket(number.cast_unsigned()).ok());
        open.is_some_and(|open| self.moving.iter().any(|other| Arc::ptr_eq(other, &open)))
    }

    /// Whether a connection stands still.
    pub fn is_giving(&self) -> bool {
        !self.moving.is_empty()
    }
}
