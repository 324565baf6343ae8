//! From records to stacks of names.
//!
//! A process writes down its mappings some time after the first sample of it, so every record
//! rests for a moment before it is named.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use profile::{Event, Kind, Mapping, Path, Stack, Stamp, UserFrame, Who};

use super::frame::{Frame, Line};
use super::kernel::KernelNames;
use super::module::Module;
use super::space::{Area, Space};
use super::unwind;
use super::wakers::{Waker, Wakers};

/// How long a record waits for mappings.
const REST: Duration = Duration::from_millis(500);
const NANOS_PER_MICRO: u64 = 1000;
/// Stands for the outer functions of a stack that was deeper than what was copied.
const CUT: &str = "[deeper]";
/// The file of the kernel's functions.
const KERNEL: &str = "[kernel]";

/// One record with names.
#[derive(Debug)]
pub struct Named {
    /// The CPU that wrote it.
    pub cpu: u16,
    /// The machine's time-stamp counter.
    pub cycles: u64,
    /// Process and thread.
    pub ids: (u32, u32),
    /// The thread's name.
    pub thread: String,
    /// The stack, outermost first.
    pub frames: Vec<Frame>,
    /// How much it counts: 1 for a sample, microseconds for a wait.
    pub weight: u64,
    /// How a wait ended; nothing for a sample.
    pub end: Option<WaitEnd>,
}

/// How a wait ended.
#[derive(Debug)]
pub enum WaitEnd {
    /// By itself.
    Deadline,
    /// By a wake-up.
    Woken(Waker),
}

impl Named {
    /// The stack, outermost first; after that of a wait a mark, and who ended it.
    pub fn lines(&self) -> Vec<Line<'_>> {
        let mut lines: Vec<Line<'_>> = self.frames.iter().map(Frame::line).collect();
        match &self.end {
            None => {}
            Some(WaitEnd::Deadline) => lines.extend([(0, "--", ""), (0, "[deadline]", "")]),
            Some(WaitEnd::Woken(waker)) => {
                lines.extend([(0, "--", ""), (0, &waker.thread, "")]);
                lines.extend(waker.frames.iter().map(Frame::line));
            }
        }
        lines
    }
}

/// What was seen, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Samples or waits.
    pub records: u64,
    /// Samples of idle CPUs, which are in no stack.
    pub idle: u64,
}

/// Names records.
pub struct Collector {
    kernel: KernelNames,
    hertz: u64,
    modules: HashMap<Vec<u8>, Rc<Module>>,
    spaces: HashMap<(u32, u64), Space>,
    resting: VecDeque<(Instant, Kept)>,
    wakers: Wakers,
    counts: Counts,
}

/// A stack record that outlives the copy of its ring.
struct Kept {
    stamp: Stamp,
    who: Who,
    extra: u64,
    space: u64,
    user: Option<UserFrame>,
    kernel: Vec<u64>,
    stack: Vec<u64>,
}

impl Collector {
    /// A collector of records whose clock has `hertz`.
    pub fn new(kernel: KernelNames, hertz: u64) -> Self {
        Self {
            kernel,
            hertz,
            modules: HashMap::new(),
            spaces: HashMap::new(),
            resting: VecDeque::new(),
            wakers: Wakers::default(),
            counts: Counts::default(),
        }
    }

    /// What was seen so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes a record.
    pub fn add(&mut self, event: &Event<'_>, now: Instant) {
        match event {
            Event::Mapping(mapping) => self.map(mapping),
            Event::Stack(stack) if stack.is_idle => self.counts.idle += 1,
            Event::Stack(stack) if stack.stamp.kind == Kind::Woken => {
                let mut frames = Vec::new();
                self.push_kernel(stack.kernel, false, &mut frames);
                let waker = Waker {
                    thread: thread_name(&stack.who),
                    ids: (stack.who.pid, stack.who.tid),
                    frames,
                };
                let woken = u32::try_from(stack.extra).unwrap_or(0);
                self.wakers.add(woken, stack.stamp.cycles, waker);
            }
            Event::Stack(stack) => {
                self.counts.records += 1;
                self.resting.push_back((now, Kept::of(stack)));
            }
        }
    }

    /// Names the records that have rested by `now`; all of them if that is `None`.
    pub fn settle(&mut self, now: Option<Instant>, act: &mut impl FnMut(Named)) {
        let has_rested = |taken: Instant| now.is_none_or(|now| now.duration_since(taken) >= REST);
        while let Some((_, kept)) = self.resting.pop_front_if(|(taken, _)| has_rested(*taken)) {
            act(self.name(&kept));
        }
    }

    fn map(&mut self, mapping: &Mapping<Path<'_>>) {
        let path: Vec<u8> = mapping.path.bytes().collect();
        let module = self.modules.entry(path).or_insert_with_key(|path| {
            let text = String::from_utf8_lossy(path).into_owned();
            Rc::new(if text.starts_with('/') {
                Module::read(&PathBuf::from(text))
            } else {
                Module::named(&text)
            })
        });
        let area = Area {
            start: mapping.start,
            end: mapping.end,
            offset: mapping.offset,
            module: module.clone(),
        };
        let space = self.spaces.entry((mapping.pid, mapping.space)).or_default();
        space.add(area);
    }

    fn name(&mut self, kept: &Kept) -> Named {
        let mut frames = Vec::new();
        self.push_user(kept, &mut frames);
        self.push_kernel(&kept.kernel, kept.stamp.kind == Kind::Sample, &mut frames);
        let (weight, end) = match kept.stamp.kind {
            Kind::Blocked => (kept.extra / NANOS_PER_MICRO, Some(self.end_of(kept))),
            _ => (1, None),
        };
        Named {
            cpu: kept.stamp.cpu,
            cycles: kept.stamp.cycles,
            ids: (kept.who.pid, kept.who.tid),
            thread: thread_name(&kept.who),
            frames,
            weight,
            end,
        }
    }

    fn push_user(&self, kept: &Kept, frames: &mut Vec<Frame>) {
        let none = Space::default();
        let key = (kept.who.pid, kept.space);
        let space = self.spaces.get(&key).unwrap_or(&none);
        let unwound = unwind::unwind(&kept.borrow(), space);
        if unwound.is_cut {
            frames.push(Frame::mark(CUT));
        }
        for (depth, &address) in unwound.addresses.iter().enumerate().rev() {
            // A program inside a call stands behind the instruction, too.
            let returns = depth > 0 || !kept.kernel.is_empty();
            frames.push(space.frame(address - u64::from(returns)));
        }
    }

    /// Adds functions of the kernel; `exact` if the first address is no return address.
    fn push_kernel(&mut self, addresses: &[u64], exact: bool, frames: &mut Vec<Frame>) {
        for (depth, &address) in addresses.iter().enumerate().rev() {
            let returns = !exact || depth > 0;
            let names = self.kernel.functions(address - u64::from(returns));
            frames.extend(names.iter().rev().map(|name| Frame {
                name: name.clone(),
                address,
                file: KERNEL.into(),
            }));
        }
    }

    fn end_of(&mut self, kept: &Kept) -> WaitEnd {
        let end = kept.stamp.cycles;
        let cycles = u128::from(kept.extra) * u128::from(self.hertz) / 1_000_000_000;
        let start = end.saturating_sub(u64::try_from(cycles).unwrap_or(u64::MAX));
        let waker = self.wakers.take(kept.who.tid, start, end);
        waker.map_or(WaitEnd::Deadline, WaitEnd::Woken)
    }
}

impl Kept {
    fn of(stack: &Stack<'_>) -> Self {
        Self {
            stamp: stack.stamp,
            who: stack.who,
            extra: stack.extra,
            space: stack.space,
            user: stack.user,
            kernel: stack.kernel.to_vec(),
            stack: stack.stack.to_vec(),
        }
    }

    fn borrow(&self) -> Stack<'_> {
        Stack {
            stamp: self.stamp,
            who: self.who,
            is_idle: false,
            extra: self.extra,
            space: self.space,
            user: self.user,
            kernel: &self.kernel,
            stack: &self.stack,
        }
    }
}

/// The thread's name; the kernel's own threads have none.
fn thread_name(who: &Who) -> String {
    let name = who.name.split(|&byte| byte == 0).next().unwrap_or(&[]);
    match (String::from_utf8_lossy(name).trim(), who.pid) {
        ("", 0) => "[kernel]".into(),
        ("", pid) => format!("[{pid}]"),
        (name, _) => name.replace(';', ":"),
    }
}
