//! What may be true of a file, and what somebody watches for.

use bitflags::bitflags;

bitflags! {
    /// Conditions of poll(2); the bits are Linux's own.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Events: u32 {
        /// There is something to read.
        const IN = 0x1;
        /// Urgent data or an exceptional condition.
        const PRI = 0x2;
        /// Writing would not block.
        const OUT = 0x4;
        /// An error is pending; always reported.
        const ERR = 0x8;
        /// Both directions are closed; always reported.
        const HUP = 0x10;
        /// The number names no open file (poll only).
        const NVAL = 0x20;
        /// Same as IN.
        const RDNORM = 0x40;
        /// Priority band data.
        const RDBAND = 0x80;
        /// Same as OUT.
        const WRNORM = 0x100;
        /// Priority band may be written.
        const WRBAND = 0x200;
        /// The peer closed its sending half.
        const RDHUP = 0x2000;
    }
}

impl Events {
    /// Conditions that are reported whether asked for or not.
    pub const ALWAYS: Self = Self::ERR.union(Self::HUP);
    /// What a readable object reports.
    pub const READABLE: Self = Self::IN.union(Self::RDNORM);
    /// What a writable object reports.
    pub const WRITABLE: Self = Self::OUT.union(Self::WRNORM);
}

bitflags! {
    /// When an entry reports; the bits are Linux's own.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Trigger: u32 {
        /// Only one set of those that say so hears of a change.
        const EXCLUSIVE = 1 << 28;
        /// Keeps the system awake; no effect here.
        const WAKEUP = 1 << 29;
        /// Reports once, until modified.
        const ONESHOT = 1 << 30;
        /// Reports changes, not states.
        const EDGE = 1 << 31;
    }
}

/// What to watch for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    /// The conditions.
    pub interest: Events,
    /// When to report them.
    pub trigger: Trigger,
    /// What the program gets back with the report.
    pub data: u64,
}

impl Watch {
    pub(crate) fn is_exclusive(&self) -> bool {
        self.trigger.contains(Trigger::EXCLUSIVE)
    }

    pub(crate) fn is_one_shot(&self) -> bool {
        self.trigger.contains(Trigger::ONESHOT)
    }

    /// Whether it reports for as long as something is true.
    pub(crate) fn is_level_triggered(&self) -> bool {
        !self.trigger.intersects(Trigger::ONESHOT | Trigger::EDGE)
    }

    /// With the conditions that are always watched for.
    pub(crate) fn armed(self) -> Self {
        Self {
            interest: self.interest | Events::ALWAYS,
            ..self
        }
    }
}

/// A report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Event {
    /// What is true.
    pub events: Events,
    /// The program's own value.
    pub data: u64,
}
