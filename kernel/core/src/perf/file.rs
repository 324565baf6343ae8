//! An event's descriptor: read(2) and the requests of ioctl(2) (linux/perf_event.h).

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use base::VirtAddr;
use mach::mem::fallible::TryPush;

use super::Format;
use super::event::Event;
use crate::error::{Error, Result};
use crate::file::{File, OpenFile};
use crate::io::Sink;
use crate::poll::{Events, Pollee};
use crate::user;

const ENABLE: u32 = 0x2400;
const DISABLE: u32 = 0x2401;
const RESET: u32 = 0x2403;
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

    /// The numbers that read(2) gives.
    pub(super) fn numbers(&self) -> Result<Vec<u64>> {
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
        match self.is_over() {
            true => Events::HUP,
            false => Events::empty(),
        }
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match request {
            ENABLE => self.order(argument, |event| event.switch(true)),
            DISABLE => self.order(argument, |event| event.switch(false)),
            RESET => self.order(argument, Event::reset),
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
