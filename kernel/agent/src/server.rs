//! The agent's thread: frames to channels, and what it sleeps for.

use alloc::vec::Vec;

use agent::{
    CHANNELS_MAX, Frame, Malformed, Message, PAYLOAD_BYTES_MAX, REQUEST_BYTES_MAX, Refusal, Renewal,
};
use base::Duration;
use mach::mem::fallible::{self, TryGrow, TryPush};
use sync::{Result, Wait, WaitQueue};
use task::family;
use vfs::file::poll::{Watched, wait_for_any};

use crate::channel::{Channel, Step, send_signal};
use crate::port::{Port, Received};

/// Files of a channel to sleep for, at most.
const FILES_OF_CHANNEL: usize = 5;

/// Frames that are taken before what they began goes on.
const FRAMES_AT_ONCE: usize = 64;

/// What the agent's thread does.
pub(crate) fn run(_: usize) -> ! {
    sched::finish_switch();
    match serve() {
        Ok(()) => {}
        Err(error) => mach::klog!("nobody can enter the machine any more: {error:?}"),
    }
    // A thread of the kernel's does not end.
    loop {
        let _ = WaitQueue::new().wait(Wait::UNINTERRUPTIBLE, || None::<()>);
    }
}

/// Serves the host until it lets go, or says what makes no sense; then all commands are closed.
fn serve() -> Result<()> {
    let Some(mut server) = Server::new()? else {
        return Ok(());
    };
    loop {
        match server.receive_all() {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(Malformed) => {
                mach::klog!("the host's words to the agent make no sense");
                return Ok(());
            }
        }
        // What the host says is heard between two looks, however much a command writes.
        match server.step_all() {
            true => sched::resched_point(),
            false => server.sleep()?,
        }
    }
}

/// A request that has not come as a whole yet.
struct Draft {
    channel: u16,
    bytes: Vec<u8>,
    /// It is refused when it ends.
    is_refused: bool,
}

struct Server {
    port: Port,
    drafts: Vec<Draft>,
    channels: Vec<Channel>,
    watched: Vec<Watched>,
    scratch: Vec<u8>,
}

impl Server {
    fn new() -> Result<Option<Self>> {
        let Some(port) = Port::open()? else {
            return Ok(None);
        };
        Ok(Some(Self {
            port,
            drafts: Vec::new(),
            channels: Vec::new(),
            watched: Vec::new(),
            scratch: fallible::zeroed(PAYLOAD_BYTES_MAX)?,
        }))
    }

    /// Obeys what has come; false at the end.
    fn receive_all(&mut self) -> core::result::Result<bool, Malformed> {
        // Whatever comes can be answered.
        for _ in 0..FRAMES_AT_ONCE {
            if !self.port.has_room() {
                break;
            }
            match self.port.receive()? {
                Received::Nothing => return Ok(true),
                Received::End => return Ok(false),
                Received::Frame(frame) => {
                    let answer = obey(&mut self.drafts, &mut self.channels, frame)?;
                    let channel = frame.channel;
                    if let Some(reason) = answer {
                        self.port.send(channel, Message::Refused(reason));
                    }
                }
            }
            sched::resched_point();
        }
        Ok(true)
    }

    /// Moves what can be moved, a piece for each channel; whether there was something.
    fn step_all(&mut self) -> bool {
        let (port, scratch) = (&mut self.port, self.scratch.as_mut_slice());
        let mut has_moved = false;
        self.channels.retain_mut(|channel| {
            let step = channel.step(port, scratch);
            has_moved |= step != Step::Idle;
            step != Step::Over
        });
        has_moved
    }

    fn sleep(&mut self) -> Result<()> {
        let wanted = 1 + self.channels.len() * FILES_OF_CHANNEL;
        self.watched.clear();
        self.watched.make_room(wanted)?;
        self.watched.push(self.port.watched());
        let has_room = self.port.has_room();
        let watched = &mut self.watched;
        for channel in &self.channels {
            // There is room for all of them.
            channel.watch(has_room, &mut |file| watched.push(file));
        }
        wait_for_any(watched, Wait::UNINTERRUPTIBLE)?;
        // No file is kept longer than its channel.
        self.watched.clear();
        Ok(())
    }
}

/// Does what a frame says; a reason to refuse what it asks for.
fn obey(
    drafts: &mut Vec<Draft>,
    channels: &mut Vec<Channel>,
    frame: Frame<'_>,
) -> core::result::Result<Option<Refusal>, Malformed> {
    let Frame { channel, message } = frame;
    if let (0, Message::Signal(number)) = (channel, message) {
        if let Some(init) = family::find(family::INIT) {
            send_signal(&init, number);
        }
        return Ok(None);
    }
    if let (0, Message::Renew(renewal)) = (channel, message) {
        // Who was at their ends is not there any more.
        drafts.clear();
        channels.clear();
        renew(&renewal);
        return Ok(None);
    }
    if !(1..=CHANNELS_MAX).contains(&channel) {
        return Err(Malformed);
    }
    let running = channels.iter_mut().find(|each| each.number() == channel);
    match (running, message) {
        (Some(running), message) => running.obey(message).map(|()| None),
        (None, Message::ExecPart(bytes)) => {
            gather(drafts, channel, bytes);
            Ok(None)
        }
        (None, Message::Exec(bytes)) => {
            gather(drafts, channel, bytes);
            Ok(begin(drafts, channels, channel).err())
        }
        (None, Message::Close) => {
            drafts.retain(|draft| draft.channel != channel);
            Ok(None)
        }
        // The command has ended, and the host does not know yet.
        (None, _) => Ok(None),
    }
}

/// The machine goes on from a snapshot, perhaps beside others.
fn renew(renewal: &Renewal) {
    random::renew(renewal.seed);
    mach::time::wall_is_after(Duration::from_nanos(renewal.since_1970_ns));
    mach::klog!("the machine goes on from a snapshot");
}

/// Adds bytes to a request.
fn gather(drafts: &mut Vec<Draft>, channel: u16, bytes: &[u8]) {
    let at = drafts.iter().position(|draft| draft.channel == channel);
    let at = at.unwrap_or(drafts.len());
    if at == drafts.len() {
        let draft = Draft {
            channel,
            bytes: Vec::new(),
            is_refused: false,
        };
        if drafts.try_push(draft).is_err() {
            // Its end finds no request.
            return;
        }
    }
    let Some(draft) = drafts.get_mut(at) else {
        return;
    };
    let is_too_long = draft.bytes.len() + bytes.len() > REQUEST_BYTES_MAX;
    if is_too_long || draft.bytes.make_room(bytes.len()).is_err() {
        draft.is_refused = true;
    } else {
        draft.bytes.extend_from_slice(bytes);
    }
}

/// Starts a command whose request has come.
fn begin(
    drafts: &mut Vec<Draft>,
    channels: &mut Vec<Channel>,
    channel: u16,
) -> core::result::Result<(), Refusal> {
    let at = drafts.iter().position(|draft| draft.channel == channel);
    let draft = at.map(|at| drafts.swap_remove(at));
    let draft = draft.filter(|draft| !draft.is_refused);
    let draft = draft.ok_or(Refusal::OutOfMemory)?;
    channels.make_room(1).map_err(|_| Refusal::OutOfMemory)?;
    channels.push(Channel::start(channel, &draft.bytes)?);
    Ok(())
}
