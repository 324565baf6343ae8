//! Bringing the device up, and up again.

use alloc::boxed::Box;
use alloc::vec::Vec;

use block::{Broken, ChannelBox, Control, Limits};
use hal::DmaSource;
use virtio::{Error, Features, NO_VECTOR, QueueShape, Transport};

use crate::channel::BlkQueue;
use crate::config::{Config, PARTS_MAX, WANTED};
use crate::slots::Slots;

/// Descriptors of a queue at most, and so commands under way.
const QUEUE_SIZE: u16 = 64;

/// How the device interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interrupts {
    /// By one line for everything.
    Line,
    /// Queue `n` raises MSI-X entry `n`, and a change of the configuration this one, if any.
    Messages {
        /// See there.
        changes: Option<u16>,
    },
}

/// The whole device.
pub struct VirtioBlk<M> {
    transport: Transport,
    memory: M,
    agreed: u64,
    /// Queues that we want, at most.
    queues_max: u16,
    interrupts: Interrupts,
    limits: Limits,
}

impl<M: DmaSource> VirtioBlk<M> {
    /// Brings the device up with at most `queues` queues, at least one.
    pub fn open(
        transport: Transport,
        memory: M,
        queues: u16,
        interrupts: Interrupts,
    ) -> Result<(Self, Vec<ChannelBox>), Error> {
        let mut device = Self {
            transport,
            memory,
            agreed: 0,
            queues_max: queues.max(1),
            interrupts,
            limits: Limits::plain(0),
        };
        let channels = device.bring_up()?;
        Ok((device, channels))
    }

    fn bring_up(&mut self) -> Result<Vec<ChannelBox>, Error> {
        self.agreed = self.transport.negotiate(0, |offered| offered & WANTED)?;
        let queues = self.config().queues().min(self.queues_max);
        self.limits = self.config().limits(self.parts_max())?;
        let channels = (0..queues).map(|index| self.queue(index));
        let channels: Vec<_> = channels.collect::<Result<_, _>>()?;
        if let Interrupts::Messages {
            changes: Some(entry),
        } = self.interrupts
        {
            // Without it a new size is noticed when somebody asks for it.
            self.transport.set_config_vector(entry);
        }
        self.transport.start();
        Ok(channels)
    }

    fn config(&self) -> Config<'_> {
        Config::new(&self.transport, self.agreed)
    }

    fn has(&self, feature: Features) -> bool {
        self.agreed & feature.bits() != 0
    }

    /// Descriptors of one command.
    fn parts_max(&self) -> u16 {
        match self.has(Features::INDIRECT_DESC) {
            true => PARTS_MAX,
            false => PARTS_MAX.min(self.transport.queue_size_max(0)).max(3),
        }
    }

    fn queue(&self, index: u16) -> Result<ChannelBox, Error> {
        let shape = QueueShape {
            index,
            size_max: QUEUE_SIZE,
            vector: match self.interrupts {
                Interrupts::Messages { .. } => index,
                Interrupts::Line => NO_VECTOR,
            },
            event_index: self.has(Features::EVENT_IDX),
        };
        let parts = match self.has(Features::INDIRECT_DESC) {
            true => PARTS_MAX,
            false => 0,
        };
        let (queue, doorbell) = self
            .transport
            .make_indirect_queue(&self.memory, shape, parts)?;
        if parts == 0 && queue.size() < self.limits.segments_max + 2 {
            return Err(Error::NoQueue(index));
        }
        let slots = Slots::new(&self.memory, queue.size()).ok_or(Error::OutOfMemory)?;
        let queue = BlkQueue::new(queue, doorbell, slots).ok_or(Error::NoQueue(index))?;
        Ok(Box::new(queue))
    }
}

impl<M: DmaSource> Control for VirtioBlk<M> {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn refresh(&mut self) -> Limits {
        if let Ok(limits) = self.config().limits(self.parts_max()) {
            self.limits.sectors = limits.sectors;
        }
        self.limits
    }

    fn stop(&mut self) {
        self.transport.stop();
    }

    fn start(&mut self) -> Result<Vec<ChannelBox>, Broken> {
        let before = self.limits;
        let channels = self.bring_up().map_err(|_| Broken)?;
        let is_same = Limits {
            sectors: before.sectors,
            ..self.limits
        } == before;
        if !is_same {
            // Requests were cut for the shape that it had.
            self.transport.stop();
            return Err(Broken);
        }
        Ok(channels)
    }
}
