//! An event's descriptor: read(2) and the requests of ioctl(2) (linux/perf_event.h).

use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;

use base::{PAGE_BYTES, VirtAddr};
use mach::mem::fallible::{self, TryPush};
use mm::MemoryObject;
use mm::io::Sink;
use mm::user;
use sync::poll::{Events, Pollee};
use sync::{Error, Result};
use task::current;

use super::Event;
use crate::attributes::Format;
use crate::ring::Ring;
use vfs::file::{File, OpenFile};

const ENABLE: u32 = 0x2400;
const DISABLE: u32 = 0x2401;
const RESET: u32 = 0x2403;
const PERIOD: u32 = 0x4008_2404;
const SET_OUTPUT: u32 = 0x2405;
const ID: u32 = 0x8008_2407;
/// The argument of the first three: all events of the group.
const WHOLE_GROUP: u64 = 1;

impl Event {
    /// Does something to its gauges, or those of its whole group.
    fn order(&self, argument: u64, act: impl Fn(&Event)) -> Result<usize> {
        match argument & WHOLE_GROUP {
            0 => act(self),
            _ => self.group()?.iter().for_each(|event| act(event)),
        }
        Ok(0)
    }

    /// Writes to where the event with this descriptor does; with -1 nowhere.
    fn set_output(&self, fd: i32) -> Result<usize> {
        if fd == -1 {
            *self.ring.lock() = Weak::new();
            return Ok(0);
        }
        let open = current().files.get().get(fd as u32)?;
        let other = event_of(&open).ok_or(Error::Invalid)?;
        self.write_to(&other)?;
        Ok(0)
    }

    /// The numbers that read(2) gives.
    pub(crate) fn numbers(&self) -> Result<Vec<u64>> {
        let format = self.attributes.format;
        let mut numbers = Vec::new();
        let own = self.count();
        let is_group = format.contains(Format::GROUP);
        let group = match is_group {
            true => self.group()?,
            false => Vec::new(),
        };
        numbers.try_push(if is_group {
            group.len() as u64
        } else {
            own.value
        })?;
        for flag in [Format::TIME_ENABLED, Format::TIME_RUNNING] {
            if format.contains(flag) {
                numbers.try_push(own.on_ns)?;
            }
        }
        if !is_group {
            self.name(&mut numbers)?;
        }
        for event in &group {
            numbers.try_push(event.count().value)?;
            event.name(&mut numbers)?;
        }
        Ok(numbers)
    }

    /// Its number and what it lost, where that is asked for. Nothing is lost that is not told in
    /// its ring.
    fn name(&self, numbers: &mut Vec<u64>) -> Result<()> {
        if self.attributes.format.contains(Format::ID) {
            numbers.try_push(self.id)?;
        }
        if self.attributes.format.contains(Format::LOST) {
            numbers.try_push(0)?;
        }
        Ok(())
    }
}

impl File for Event {
    fn read(&self, _open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        let numbers = self.numbers()?;
        if to.remaining() < numbers.len() * size_of::<u64>() {
            return Err(Error::NoSpace);
        }
        let mut count = 0;
        for number in numbers {
            count += to.put_whole(&number.to_ne_bytes())?;
        }
        Ok(count)
    }

    fn poll(&self) -> Events {
        let mut events = match self.is_over() {
            true => Events::HUP,
            false => Events::empty(),
        };
        let ring = self.ring.lock().upgrade();
        if ring.is_some_and(|ring| ring.is_readable()) {
            events |= Events::READABLE;
        }
        events
    }

    fn map(self: Arc<Self>, range: Range<u64>, is_shared: bool) -> Result<Arc<dyn MemoryObject>> {
        let is_scattered = self.attributes.is_inherited && self.attributes.only_on.is_none();
        if !is_shared || range.start != 0 || is_scattered {
            return Err(Error::Invalid);
        }
        let pages = range.end.div_ceil(PAGE_BYTES as u64) as usize;
        let known = self.ring.lock().upgrade();
        if let Some(ring) = known {
            return match ring.size() == (pages * PAGE_BYTES) as u64 {
                true => Ok(ring),
                false => Err(Error::Invalid),
            };
        }
        let ring = fallible::arc(Ring::new(pages, self.me.clone())?)?;
        *self.ring.lock() = Arc::downgrade(&ring);
        Ok(ring)
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match request {
            ENABLE => self.order(argument, |event| event.switch(true)),
            DISABLE => self.order(argument, |event| event.switch(false)),
            RESET => self.order(argument, Event::reset),
            PERIOD => {
                self.set_period(user::read(VirtAddr(argument))?)?;
                Ok(0)
            }
            SET_OUTPUT => self.set_output(argument as i32),
            ID => {
                user::write(VirtAddr(argument), self.id)?;
                Ok(0)
            }
            _ => Err(Error::NotTerminal),
        }
    }

    fn label(&self) -> String {
        String::from("anon_inode:[perf_event]")
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// The event that a file is, if it is one.
pub fn event_of(open: &OpenFile) -> Option<Arc<Event>> {
    let event: &Event = open.file.as_any().downcast_ref()?;
    event.arc()
}
