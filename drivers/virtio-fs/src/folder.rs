//! The device as a channel.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use fuse::{
    Call, Channel, Client, REPLY_HEADER_BYTES, Reply, ReplyError, Request, SubmitError, Tag,
};
use hal::DmaSource;
use virtio::{Error, Features, QueueShape, Transport};

use crate::lane::Lane;
use crate::slot::Slot;

/// The queue of high priority, and the first one of requests.
const HIPRIO: u16 = 0;
const REQUESTS: u16 = 1;
/// Requests under way at most.
const SLOTS: u16 = 16;
/// Descriptors of a queue: two for each request.
const QUEUE_SIZE: u16 = 2 * SLOTS;
/// Data of one message.
const DATA_BYTES: usize = 128 * 1024;
/// A message with its data, names and headers, and a reply without data; or the other way round.
const SLOT_BYTES: usize = DATA_BYTES + 8192;
/// `struct virtio_fs_config`: the tag, which zeroes fill up, and the number of queues.
const TAG_BYTES: usize = 36;

/// A folder of the host.
pub struct VirtioFs<M> {
    transport: Transport,
    name: Vec<u8>,
    hiprio: Lane,
    requests: Lane,
    memory: M,
    client: Client,
    /// By tag; `None` until the tag is first used.
    slots: Box<[Option<Slot>]>,
    /// Messages on their way in or out.
    scratch: Box<[u8]>,
}

impl<M: DmaSource> VirtioFs<M> {
    /// Brings the device up. Replies raise MSI-X entry `vector`, or the device's line.
    pub fn new(transport: Transport, memory: M, vector: u16) -> Result<Self, Error> {
        let agreed = transport.negotiate(0, |_| Features::EVENT_IDX.bits())?;
        let name = read_name(&transport)?;
        let shape = |index| QueueShape {
            index,
            size_max: QUEUE_SIZE,
            vector,
            event_index: agreed & Features::EVENT_IDX.bits() != 0,
        };
        let hiprio = Lane::new(&transport, &memory, shape(HIPRIO))?;
        let requests = Lane::new(&transport, &memory, shape(REQUESTS))?;
        transport.start();
        Ok(Self {
            transport,
            name,
            hiprio,
            requests,
            memory,
            client: Client::new(SLOTS),
            slots: (0..SLOTS).map(|_| None).collect(),
            scratch: vec![0; SLOT_BYTES].into_boxed_slice(),
        })
    }

    /// Sends the message of `tag` that stands in the scratch buffer.
    fn send(&mut self, tag: Tag, bytes: usize, call: &Call<'_>) -> Result<(), SubmitError> {
        let slot = self.slots.get_mut(tag.index()).ok_or(SubmitError::Broken)?;
        let memory = match slot.take() {
            Some(Slot::Idle(memory)) => memory,
            // A tag is given out again when its reply has come.
            Some(busy @ Slot::InFlight(..)) => {
                *slot = Some(busy);
                return Err(SubmitError::Broken);
            }
            None => Slot::alloc(&self.memory, SLOT_BYTES).ok_or(SubmitError::NoMemory)?,
        };
        let message = self.scratch.get(..bytes).unwrap_or_default();
        let (filled, chain) = Slot::fill(memory, message, call.request.reply_bytes());
        let lane = match call.request {
            Request::BatchForget { .. } => &mut self.hiprio,
            _ => &mut self.requests,
        };
        let sent = match chain {
            Some(chain) => lane.send(tag, &chain),
            None => Err(SubmitError::TooLarge),
        };
        *slot = Some(match sent {
            Ok(()) => filled,
            Err(_) => Slot::Idle(filled.take_back().0),
        });
        sent
    }

    /// The reply to `tag`: as much of its room as its header says, however that changes meanwhile.
    fn reply(&mut self, tag: Tag) -> Result<Reply<'_>, ReplyError> {
        let slot = self.slots.get_mut(tag.index());
        let slot = slot.ok_or(ReplyError::NotAsked)?;
        let (memory, room) = slot.take().ok_or(ReplyError::NotAsked)?.take_back();
        let mut header = [0; REPLY_HEADER_BYTES];
        if !room.is_empty() {
            memory.copy_out(room.start, &mut header);
        }
        let len = fuse::reply_bytes(&header).min(room.len());
        let message = self.scratch.get_mut(..len).unwrap_or_default();
        memory.copy_out(room.start, message);
        *slot = Some(Slot::Idle(memory));
        self.client.finish(tag, message)
    }

    /// The next chain that either queue is done with; `None` when both have no more.
    fn next(&mut self) -> Option<(Tag, Result<(), ReplyError>)> {
        for lane in [&mut self.hiprio, &mut self.requests] {
            match lane.take() {
                Ok(Some(tag)) => return Some((tag, Ok(()))),
                Ok(None) => {}
                // The device broke its queue: nobody shall wait for it. What it may still write
                // stays its own.
                Err(_) => {
                    if let Some(tag) = lane.give_up_one() {
                        return Some((tag, Err(ReplyError::Broken)));
                    }
                }
            }
        }
        None
    }
}

impl<M: DmaSource> Channel for VirtioFs<M> {
    fn name(&self) -> &[u8] {
        &self.name
    }

    fn data_bytes_max(&self) -> usize {
        DATA_BYTES
    }

    fn submit(&mut self, call: &Call<'_>) -> Result<Tag, SubmitError> {
        if self.requests.is_broken() || self.hiprio.is_broken() {
            return Err(SubmitError::Broken);
        }
        let (tag, bytes) = self.client.begin(call, &mut self.scratch)?;
        let sent = self.send(tag, bytes, call);
        if sent.is_err() {
            self.client.cancel(tag);
        }
        sent.map(|()| tag)
    }

    fn complete(&mut self, sink: &mut dyn FnMut(Tag, Result<Reply<'_>, ReplyError>)) -> usize {
        let mut count = 0;
        while let Some((tag, came)) = self.next() {
            match came {
                Ok(()) => sink(tag, self.reply(tag)),
                Err(error) => {
                    self.client.cancel(tag);
                    sink(tag, Err(error));
                }
            }
            count += 1;
        }
        count
    }

    fn arm(&mut self) -> bool {
        // Both, whatever the first one says.
        let came = [self.hiprio.arm(), self.requests.arm()];
        came.contains(&true)
    }
}

/// The tag, without the zeroes that fill it up.
fn read_name(transport: &Transport) -> Result<Vec<u8>, Error> {
    let config = transport.config();
    let tag = config.window(0, TAG_BYTES).ok_or(Error::RegistersOutside)?;
    let bytes = (0..TAG_BYTES).map(|at| tag.read8(at));
    Ok(bytes.take_while(|&byte| byte != 0).collect())
}

impl<M> Drop for VirtioFs<M> {
    fn drop(&mut self) {
        self.transport.stop();
        self.hiprio.retire();
        self.requests.retire();
        for slot in &mut self.slots {
            drop(slot.take().map(Slot::take_back));
        }
    }
}
