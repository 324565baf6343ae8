//! Where an event writes its records to, and how often it takes samples.
//!
//! A record is made before the ring is locked, and so is the one of what was lost before it: both
//! need memory. What cannot be made or does not fit is counted as lost by the ring.

use alloc::sync::{Arc, Weak};
use core::sync::atomic::Ordering::Relaxed;

use base::CpuId;
use sync::poll::Events;
use sync::{Error, Result};

use super::Event;
use crate::record::{self, EventIdentity, Record, SampleContext};
use crate::ring::Ring;

impl Event {
    /// Whether it is about what happens on this CPU.
    pub(crate) fn is_about(&self, cpu: CpuId) -> bool {
        self.attributes.only_on.is_none_or(|only| only == cpu)
    }

    /// What it says of itself in its records.
    pub(crate) fn author(&self) -> EventIdentity {
        EventIdentity {
            id: self.id,
            fields: self.attributes.fields,
            hears: self.attributes.hears,
        }
    }

    /// Nanoseconds from sample to sample, if it takes any.
    pub(crate) fn period_ns(&self) -> Option<u64> {
        let period_ns = self.attributes.period_ns;
        period_ns.map(|_| self.period_ns.load(Relaxed))
    }

    /// Changes how often it takes samples.
    pub(super) fn set_period(&self, period_ns: u64) -> Result<()> {
        if period_ns == 0 || period_ns >> 63 != 0 || self.attributes.period_ns.is_none() {
            return Err(Error::Invalid);
        }
        self.period_ns.store(period_ns, Relaxed);
        Ok(())
    }

    /// Writes from now on to where `other` does.
    ///
    /// Errors: `Invalid` for one about another CPU, or one that writes elsewhere itself.
    pub fn write_to(&self, other: &Event) -> Result<()> {
        let own = self.output();
        let owns = own.is_some_and(|ring| Weak::ptr_eq(&ring.owner, &self.me));
        if owns || other.attributes.only_on != self.attributes.only_on {
            return Err(Error::Invalid);
        }
        let ring = other.ring.lock().clone();
        *self.ring.lock() = ring;
        Ok(())
    }

    /// Counts samples as lost that were never made.
    pub(crate) fn lose(&self, count: u64) {
        if let Some(ring) = self.output() {
            ring.lose(count);
        }
    }

    /// Writes the record to the ring, if there is one; counts it as lost if it is none.
    pub(crate) fn emit(&self, record: Result<Record>, moment: &SampleContext) {
        let Some(ring) = self.output() else {
            return;
        };
        let lost = ring.take_losses();
        match self.write(&ring, lost, record, moment) {
            Ok(true) => self.announce(&ring),
            Ok(false) => {}
            Err(_) => ring.lose(lost + 1),
        }
    }

    fn output(&self) -> Option<Arc<Ring<Event>>> {
        self.ring.lock().upgrade()
    }

    /// Writes the record behind that of what was lost. Whether somebody is to be woken.
    fn write(
        &self,
        ring: &Ring<Event>,
        lost: u64,
        record: Result<Record>,
        moment: &SampleContext,
    ) -> Result<bool> {
        let record = record?;
        if lost == 0 {
            return ring.write([&[], record.words()], self.attributes.wakeup);
        }
        let loss = record::lost(self.author(), lost)?.with_trailer(self.author(), moment)?;
        ring.write([loss.words(), record.words()], self.attributes.wakeup)
    }

    fn announce(&self, ring: &Ring<Event>) {
        self.pollee.notify(Events::READABLE);
        if let Some(owner) = ring.owner.upgrade() {
            owner.pollee.notify(Events::READABLE);
        }
    }
}
