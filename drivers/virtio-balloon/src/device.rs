//! The device: its configuration and its queues.

use hal::{
    BalloonBroken, BalloonDevice, DmaSource, HANDOVER_FRAMES_MAX, Handover, MemoryUse, Mmio,
};
use virtio::{Error, Features, NO_VECTOR, QueueShape, Transport};

use crate::buffer_queue::BufferQueue;
use crate::statistics::{ANSWER_BYTES, records};

/// Frames are not used before the host knows (section 5.5.3).
const MUST_TELL_HOST: u64 = 1 << 0;
/// The host may ask how memory is used.
const STATS_VQ: u64 = 1 << 1;
/// The machine may take frames back that it needs.
const DEFLATE_ON_OOM: u64 = 1 << 2;

/// Where the configuration says how many frames the host wants.
const NUM_PAGES: usize = 0;
/// Where the driver says how many it has.
const ACTUAL: usize = 4;
const CONFIG_BYTES: usize = 8;

const INFLATE: u16 = 0;
const DEFLATE: u16 = 1;
const STATISTICS: u16 = 2;

/// Bytes of a frame's number.
const NUMBER_BYTES: usize = 4;
/// Descriptors of a queue: one buffer is under way at a time.
const QUEUE_SIZE: u16 = 2;

/// How the device interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interrupts {
    /// By one line for all.
    Line,
    /// By messages: MSI-X entries.
    Messages {
        /// For what the device has used.
        queues: u16,
        /// For changes of what the host asks for.
        changes: u16,
    },
}

/// A balloon device.
pub struct VirtioBalloon {
    transport: Transport,
    config: Mmio,
    lets_take_back: bool,
    inflate: BufferQueue,
    deflate: BufferQueue,
    statistics: Option<BufferQueue>,
    /// What was handed over last.
    last: Handover,
}

impl VirtioBalloon {
    /// Brings the device up.
    pub fn new(
        transport: Transport,
        memory: &impl DmaSource,
        interrupts: Interrupts,
    ) -> Result<Self, Error> {
        let wanted = MUST_TELL_HOST | STATS_VQ | DEFLATE_ON_OOM | Features::EVENT_IDX.bits();
        let agreed = transport.negotiate(0, |_| wanted)?;
        let config = transport.config().window(NUM_PAGES, CONFIG_BYTES);
        let config = config.ok_or(Error::RegistersOutside)?;
        let vector = match interrupts {
            Interrupts::Line => NO_VECTOR,
            Interrupts::Messages { queues, changes } => {
                if !transport.set_config_vector(changes) {
                    return Err(Error::VectorRefused(changes));
                }
                queues
            }
        };
        let queue = |index, bytes| {
            let shape = QueueShape {
                index,
                size_max: QUEUE_SIZE,
                vector,
                event_index: agreed & Features::EVENT_IDX.bits() != 0,
            };
            BufferQueue::new(&transport, memory, shape, bytes)
        };
        let numbers = HANDOVER_FRAMES_MAX * NUMBER_BYTES;
        let statistics = match agreed & STATS_VQ {
            0 => None,
            _ => Some(queue(STATISTICS, ANSWER_BYTES)?),
        };
        let balloon = Self {
            inflate: queue(INFLATE, numbers)?,
            deflate: queue(DEFLATE, numbers)?,
            lets_take_back: agreed & DEFLATE_ON_OOM != 0,
            last: Handover::ToMachine,
            transport,
            config,
            statistics,
        };
        balloon.transport.start();
        Ok(balloon)
    }

    /// Of what was handed over last.
    fn last_queue(&mut self) -> &mut BufferQueue {
        match self.last {
            Handover::ToHost => &mut self.inflate,
            Handover::ToMachine => &mut self.deflate,
        }
    }
}

impl BalloonDevice for VirtioBalloon {
    fn target(&self) -> u32 {
        self.config.read32(NUM_PAGES)
    }

    fn set_actual(&mut self, frames: u32) {
        self.config.write32(ACTUAL, frames);
    }

    fn lets_take_back(&self) -> bool {
        self.lets_take_back
    }

    fn hand_over(&mut self, what: Handover, frames: &[u32]) -> Result<(), BalloonBroken> {
        self.last = what;
        let numbers = frames.iter().map(|frame| frame.to_le_bytes());
        self.last_queue().send(numbers)
    }

    fn is_done(&mut self) -> Result<bool, BalloonBroken> {
        self.last_queue().is_done()
    }

    fn wants_use(&mut self) -> bool {
        let statistics = self.statistics.as_mut();
        statistics.is_some_and(|queue| queue.is_done() == Ok(true))
    }

    fn report_use(&mut self, memory: &MemoryUse) {
        if let Some(queue) = &mut self.statistics {
            // A queue that is broken wants no more answers.
            let _ = queue.send(records(memory).into_iter());
        }
    }
}

impl Drop for VirtioBalloon {
    fn drop(&mut self) {
        self.transport.stop();
        let lists = [&mut self.inflate, &mut self.deflate];
        for queue in lists.into_iter().chain(&mut self.statistics) {
            queue.retire();
        }
    }
}
