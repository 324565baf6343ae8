//! A queue to the namespace of an NVMe function that is the program's own (`docs/vsa.md`).
//!
//! # Idea
//! The kernel's driver (`drivers/nvme`) runs here, over doorbells and memory that VFIO gave the program. The kernel keeps the other
//! registers and the admin queue, and is asked for what the driver wants of those. What is submitted is
//! written to the submission queue, and the doorbell rung once for all of it; completions are seen in memory.
//!
//! Each completion would interrupt, and an interrupt is a trap of the kernel. So the interrupt leads nowhere while completions
//! are taken, and is led to an eventfd when the program waits. As each change of that is a call, it stays so until
//! [`CALM`] completions were taken in a row that nobody had to wait for.
//!
//! # Invariants
//! - **Given**: the buffer of a request is kept in the place of its command until that has ended, or for good.
//!
//! Not here: several namespaces or queues of a function (it has more: one is used); requests longer than a command.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use block::{
    Channel, ChannelBox, Command, Durability, Limits, SECTOR_BYTES, SectorRange, SubmitError, Tag,
    Verdict,
};
use hal::Span;
use hal::pci::PciFunction;
use nvme::{Access, Clock, Controller, Machine, Mediator, Wanted};
use rt::vfio::{BlocksForDevice, DeviceMemory, Function, Interrupt};
use rt::wait_for;

use super::{BlockQueue, Buffer, Completion, Geometry, Operation, Outcome, Request};

/// Completions in a row that nobody waited for, after which interrupts lead nowhere again.
const CALM: u32 = 256;
/// Where its registers lie, and where in them the doorbells begin.
const REGISTERS: u8 = 0;
const DOORBELLS: u64 = 0x1000;
const COMMAND: u16 = 0x04;
const COMMAND_BUS_MASTER: u32 = 1 << 2;

/// A request under way, by the place of its command.
struct Pending {
    cookie: u64,
    buffer: Option<Buffer>,
}

/// See the module.
pub struct NvmeQueue {
    channel: ChannelBox,
    pending: Vec<Option<Pending>>,
    under_way: usize,
    /// Ended before they were begun.
    refused: Vec<Completion>,
    geometry: Geometry,
    limits: Limits,
    is_broken: bool,
    is_armed: bool,
    /// Completions since the last wait.
    calm: u32,
    /// What the driver knows of the controller; the queue's memory is of it.
    controller: Controller<DeviceMemory, Place>,
    blocks: BlocksForDevice,
    interrupt: Interrupt,
    revocation: Interrupt,
    function: Arc<Function>,
}

/// The function, and the program's clock.
struct Place(Arc<Function>);

impl Clock for Place {
    fn now(&self) -> Instant {
        Instant::from_nanos(rt::monotonic_nanos())
    }

    fn pause(&self) {
        std::thread::yield_now();
    }
}

impl Machine for Place {
    fn let_reach_memory(&self, may: bool) {
        let command = self.0.config_read(COMMAND) & 0xffff;
        let command = match may {
            true => command | COMMAND_BUS_MASTER,
            false => command & !COMMAND_BUS_MASTER,
        };
        self.0.config_write(COMMAND, command);
    }
}

/// The kernel, which keeps the admin queue.
struct Kernel(Arc<Function>);

impl Mediator for Kernel {
    fn register(&self, offset: usize) -> u32 {
        self.0.register(REGISTERS, offset)
    }

    fn enable(&self, is_on: bool) {
        // The status register says how it went.
        let _ = self.0.enable_nvme(is_on);
    }

    fn run(&self, command: [u64; 8]) -> Result<(u16, u32), nvme::Error> {
        self.0
            .nvme_admin(command)
            .map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => nvme::Error::NotPermitted,
                _ => nvme::Error::Absent,
            })
    }
}

impl NvmeQueue {
    /// Takes the function at `name`, as in /sys/bus/pci/devices, with its first namespace and so many bytes of buffers.
    ///
    /// Errors: those of [`Function::open`]; `Unsupported` for a function that is no NVMe controller, or that the kernel has not
    /// taken online; `NotFound` if no namespace is attached to it.
    pub fn open(name: &str, buffer_bytes: usize) -> io::Result<Self> {
        let function = Arc::new(Function::open(name)?);
        if !nvme::is_for(&*function) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        hal::pci::enable(&*function);
        let doorbells = function.bar_from(REGISTERS, DOORBELLS);
        let access = Access::Mediated {
            doorbells: doorbells.ok_or(io::ErrorKind::Unsupported)?,
            mediator: Arc::new(Kernel(function.clone())),
        };
        let (rings, blocks) = function.block_memory(buffer_bytes)?;
        // A queue whose interrupt is not known when it is made never raises it.
        let interrupt = function.interrupt()?;
        let wanted = Wanted {
            queues: 1,
            vectors: 1,
            may_be_empty: false,
        };
        let place = Place(function.clone());
        let controller = Controller::open(access, rings, place, wanted);
        let mut controller = controller.map_err(refused)?;
        let channel = controller.start(0).map_err(refused)?.pop();
        let limits = controller.limits(0);
        let (Some(channel), Some(limits)) = (channel, limits) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        function.lead(&interrupt, false)?;
        let revocation = function.revocation()?;
        let block_bytes = limits.block_bytes;
        Ok(Self {
            pending: (0..channel.depth()).map(|_| None).collect(),
            channel,
            under_way: 0,
            refused: Vec::new(),
            geometry: Geometry {
                blocks: limits.sectors / u64::from(block_bytes / SECTOR_BYTES as u32),
                block_bytes,
            },
            limits,
            is_broken: false,
            is_armed: false,
            calm: 0,
            controller,
            blocks,
            interrupt,
            revocation,
            function,
        })
    }

    /// Requests under way at most.
    pub fn depth(&self) -> usize {
        self.pending.len()
    }

    /// Where the request's blocks are, and what of its buffer is for them.
    fn check(&self, request: &Request) -> Result<(SectorRange, Option<Span>), Outcome> {
        let Request {
            operation,
            first,
            count,
            ..
        } = *request;
        if operation == Operation::Flush {
            let nothing = SectorRange { first: 0, count: 0 };
            return Ok((nothing, None));
        }
        let end = first.checked_add(count).filter(|_| count != 0);
        if end.is_none_or(|end| end > self.geometry.blocks) {
            return Err(Outcome::OutOfArea);
        }
        let each = u64::from(self.geometry.block_bytes);
        let sectors = each / SECTOR_BYTES;
        let range = SectorRange {
            first: first * sectors,
            count: count * sectors,
        };
        if operation == Operation::Discard {
            return Ok((range, None));
        }
        let bytes = count * each;
        let buffer = request.buffer.as_ref();
        let buffer = buffer.filter(|_| bytes <= self.limits.command_bytes_max.into());
        let span = buffer.and_then(|buffer| self.blocks.span(buffer, bytes as usize));
        span.map(|span| (range, Some(span)))
            .ok_or(Outcome::OutOfMemory)
    }

    fn begin(&mut self, request: &Request) -> Result<Tag, Option<Outcome>> {
        if self.is_broken {
            return Err(Some(Outcome::Revoked));
        }
        let (sectors, span) = self.check(request).map_err(Some)?;
        let command = Command {
            operation: match request.operation {
                Operation::Read => block::Operation::Read,
                Operation::Write { is_forced: true } => block::Operation::Write(Durability::Forced),
                Operation::Write { is_forced: false } => {
                    block::Operation::Write(Durability::Volatile)
                }
                Operation::Flush => block::Operation::Flush,
                Operation::Discard => block::Operation::Discard,
            },
            sectors,
            spans: span.as_slice(),
        };
        self.channel.submit(&command).map_err(|error| match error {
            SubmitError::Full => None,
            SubmitError::TooLarge => Some(Outcome::Unknown),
            SubmitError::Broken => Some(Outcome::Revoked),
        })
    }

    /// The controller does not keep to the rules, or is gone: nothing that it was told of is used again.
    #[cold]
    fn fail(&mut self) -> Option<Completion> {
        self.is_broken = true;
        let gone = self.pending.iter_mut().find_map(Option::take)?;
        self.under_way -= 1;
        // A device that was not stopped may still write to it.
        std::mem::forget(gone.buffer);
        Some(Completion {
            cookie: gone.cookie,
            outcome: Outcome::Revoked,
            buffer: None,
        })
    }

    /// Has the interrupt lead nowhere.
    #[cold]
    fn silence(&mut self) {
        self.is_armed = self.function.lead(&self.interrupt, false).is_err();
    }

    /// The administrator took the function away, or the physical one its controller.
    #[cold]
    fn is_gone(&self) -> bool {
        let (interrupt, revocation) = (self.interrupt.as_fd(), self.revocation.as_fd());
        !self.controller.is_ready() || wait_for(interrupt, Some(revocation), Some(0)).is_err()
    }
}

impl BlockQueue for NvmeQueue {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn buffer(&mut self, bytes: usize) -> Option<Buffer> {
        let fits = bytes <= self.limits.command_bytes_max as usize;
        fits.then(|| self.blocks.memory().buffer(bytes)).flatten()
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        match self.begin(&request) {
            Ok(Tag(place)) => {
                self.under_way += 1;
                self.pending[usize::from(place)] = Some(Pending {
                    cookie: request.cookie,
                    buffer: request.buffer,
                });
                Ok(())
            }
            Err(Some(outcome)) if self.refused.len() < self.pending.len() => {
                self.refused.push(Completion {
                    cookie: request.cookie,
                    outcome,
                    buffer: request.buffer,
                });
                Ok(())
            }
            Err(_) => Err(request),
        }
    }

    fn kick(&mut self) {
        self.channel.publish();
    }

    fn poll(&mut self) -> Option<Completion> {
        if let Some(refused) = self.refused.pop() {
            return Some(refused);
        }
        if self.is_broken {
            return self.fail();
        }
        let (Tag(place), verdict) = match self.channel.complete() {
            Ok(ended) => ended?,
            Err(block::Broken) => return self.fail(),
        };
        let Some(pending) = self
            .pending
            .get_mut(usize::from(place))
            .and_then(Option::take)
        else {
            return self.fail();
        };
        self.under_way -= 1;
        self.calm += 1;
        if self.is_armed && self.calm >= CALM {
            self.silence();
        }
        Some(Completion {
            cookie: pending.cookie,
            outcome: match verdict {
                Verdict::Done => Outcome::Done,
                Verdict::Failed => Outcome::Failed,
                Verdict::Unsupported => Outcome::Unknown,
            },
            buffer: pending.buffer,
        })
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let is_over = self.is_broken && self.under_way == 0 && self.refused.is_empty();
        if is_over {
            return Err(io::ErrorKind::NotConnected.into());
        }
        self.kick();
        if !self.arm() {
            return Ok(());
        }
        let nanos = timeout.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let (interrupt, revocation) = (self.interrupt.as_fd(), self.revocation.as_fd());
        if wait_for(interrupt, Some(revocation), nanos).is_err() {
            self.is_broken = true;
        }
        Ok(())
    }

    fn ends_without_kernel(&self) -> bool {
        true
    }

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.interrupt.as_fd()
    }

    fn arm(&mut self) -> bool {
        self.calm = 0;
        if self.is_broken || !self.refused.is_empty() {
            return false;
        }
        self.interrupt.clear();
        if !self.is_armed {
            self.is_armed = self.function.lead(&self.interrupt, true).is_ok();
        }
        if self.channel.arm() {
            return false;
        }
        self.is_broken = !self.is_armed || self.is_gone();
        !self.is_broken
    }
}

fn refused(error: nvme::Error) -> io::Error {
    let kind = match error {
        nvme::Error::NoNamespace => io::ErrorKind::NotFound,
        nvme::Error::OutOfMemory => io::ErrorKind::OutOfMemory,
        _ => io::ErrorKind::Unsupported,
    };
    io::Error::new(kind, format!("the NVMe function cannot be used: {error:?}"))
}
