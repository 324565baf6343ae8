//! The device as a channel.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use hal::DmaSource;
use ninep::{Channel, Client, Reply, ReplyError, Request, SubmitError, Tag};
use virtio::{Doorbell, Error, Features, QueueShape, Transport};
use virtq::{Queue, Used};

use crate::slot::Slot;

/// The device says what the volume is called.
const MOUNT_TAG: u64 = 1 << 0;

/// The only queue.
const REQUESTS: u16 = 0;
/// Requests under way at most.
const SLOTS: u16 = 16;
/// Descriptors: two for each request.
const QUEUE_SIZE: u16 = 2 * SLOTS;
/// The largest message: 64 KiB of data and its header.
const MSIZE: usize = 64 * 1024 + ninep::IO_HEADER_BYTES;
/// A name of a volume is no longer.
const NAME_BYTES_MAX: usize = 255;

/// A volume of the host.
pub struct Virtio9p<M> {
    transport: Transport,
    name: Vec<u8>,
    queue: Queue,
    doorbell: Doorbell,
    memory: M,
    client: Client,
    /// By tag; `None` until the tag is first used.
    slots: Box<[Option<Slot>]>,
    /// The tag of each chain in flight, by the queue's token.
    tags: Box<[Option<Tag>]>,
    /// Messages on their way in or out.
    scratch: Box<[u8]>,
}

impl<M: DmaSource> Virtio9p<M> {
    /// Brings the device up. Replies raise MSI-X entry `vector`, or the device's line.
    pub fn new(transport: Transport, memory: M, vector: u16) -> Result<Self, Error> {
        let agreed = transport.negotiate(MOUNT_TAG, |_| Features::EVENT_IDX.bits())?;
        let name = read_name(&transport)?;
        let shape = QueueShape {
            index: REQUESTS,
            size_max: QUEUE_SIZE,
            vector,
            event_index: agreed & Features::EVENT_IDX.bits() != 0,
        };
        if transport.queue_size_max(REQUESTS) < QUEUE_SIZE {
            return Err(Error::NoQueue(REQUESTS));
        }
        let (queue, doorbell) = transport.make_queue(&memory, shape)?;
        transport.start();
        Ok(Self {
            transport,
            name,
            queue,
            doorbell,
            memory,
            client: Client::new(SLOTS, MSIZE),
            slots: (0..SLOTS).map(|_| None).collect(),
            tags: vec![None; usize::from(QUEUE_SIZE)].into_boxed_slice(),
            scratch: vec![0; MSIZE].into_boxed_slice(),
        })
    }

    /// Sends the message of `tag` that stands in the scratch buffer.
    fn send(&mut self, tag: Tag, bytes: usize, request: &Request<'_>) -> Result<(), SubmitError> {
        let slot = &mut self.slots[tag.index()];
        let memory = match slot.take() {
            Some(Slot::Idle(memory)) => memory,
            // A tag is given out again when its reply has come.
            Some(busy @ Slot::InFlight(_)) => {
                *slot = Some(busy);
                return Err(SubmitError::Broken);
            }
            None => Slot::alloc(&self.memory, MSIZE).ok_or(SubmitError::NoMemory)?,
        };
        let (filled, chain) = Slot::fill(memory, &self.scratch[..bytes], request, MSIZE);
        let added = match chain {
            Some(chain) => self.queue.add(chain).map_err(|_| SubmitError::Broken),
            None => Err(SubmitError::TooLarge),
        };
        let token = match added {
            Ok(token) => token,
            Err(error) => {
                *slot = Some(Slot::Idle(filled.take_back()));
                return Err(error);
            }
        };
        *slot = Some(filled);
        self.tags[token.index()] = Some(tag);
        if self.queue.publish() {
            self.doorbell.ring();
        }
        Ok(())
    }

    /// The reply that a completion brought.
    fn reply(&mut self, used: Used) -> Option<(Tag, Result<Reply<'_>, ReplyError>)> {
        let tag = self.tags[used.token.index()].take()?;
        let memory = self.slots[tag.index()].take()?.take_back();
        let message = &mut self.scratch[..(used.written as usize).min(MSIZE)];
        memory.copy_out(MSIZE, message);
        self.slots[tag.index()] = Some(Slot::Idle(memory));
        Some((tag, self.client.finish(tag, message)))
    }

    /// The device broke its queue: nobody shall wait for it.
    fn fail_all(&mut self, sink: &mut dyn FnMut(Tag, Result<Reply<'_>, ReplyError>)) -> usize {
        let mut count = 0;
        for tag in self.tags.iter_mut().filter_map(Option::take) {
            self.client.cancel(tag);
            sink(tag, Err(ReplyError::Broken));
            count += 1;
        }
        count
    }
}

impl<M: DmaSource> Channel for Virtio9p<M> {
    fn name(&self) -> &[u8] {
        &self.name
    }

    fn msize(&self) -> usize {
        self.client.msize()
    }

    fn submit(&mut self, request: &Request<'_>) -> Result<Tag, SubmitError> {
        if self.queue.is_broken() {
            return Err(SubmitError::Broken);
        }
        let (tag, bytes) = self.client.begin(request, &mut self.scratch)?;
        match self.send(tag, bytes, request) {
            Ok(()) => Ok(tag),
            Err(error) => {
                self.client.cancel(tag);
                Err(error)
            }
        }
    }

    fn complete(&mut self, sink: &mut dyn FnMut(Tag, Result<Reply<'_>, ReplyError>)) -> usize {
        let mut count = 0;
        loop {
            match self.queue.take() {
                Ok(Some(used)) => {
                    if let Some((tag, reply)) = self.reply(used) {
                        sink(tag, reply);
                        count += 1;
                    }
                }
                Ok(None) => return count,
                Err(_) => return count + self.fail_all(sink),
            }
        }
    }

    fn arm(&mut self) -> bool {
        !self.queue.is_broken() && self.queue.arm()
    }
}

/// `tag_len[2] tag[tag_len]`.
fn read_name(transport: &Transport) -> Result<Vec<u8>, Error> {
    let config = transport.config();
    let len = config
        .window(0, 2)
        .ok_or(Error::RegistersOutside)?
        .read16(0);
    let len = usize::from(len).min(NAME_BYTES_MAX);
    let name = config.window(2, len).ok_or(Error::RegistersOutside)?;
    Ok((0..len).map(|at| name.read8(at)).collect())
}

impl<M> Drop for Virtio9p<M> {
    fn drop(&mut self) {
        self.transport.stop();
        self.queue.retire();
        for slot in &mut self.slots {
            drop(slot.take().map(Slot::take_back));
        }
    }
}
