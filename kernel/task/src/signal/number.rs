//! Signals by number, and sets of them.

use core::ops::{BitAnd, BitOr, Not};

/// A signal, 1 to 64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Signal(u8);

/// What happens when a signal arrives that the program has said nothing about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Default {
    /// The process ends.
    Terminate,
    /// The process ends; elsewhere a core file would be written.
    Core,
    /// Nothing.
    Ignore,
    /// The process stops.
    Stop,
    /// A stopped process goes on.
    Continue,
}

macro_rules! signals {
    ($($name:ident = $number:literal, $default:ident;)*) => {
        impl Signal {
            $(
                #[doc = concat!("SIG", stringify!($name), ".")]
                pub const $name: Self = Self($number);
            )*

            /// The name, without "SIG" for real-time signals' sake: "SEGV", "RT".
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($number => concat!("SIG", stringify!($name)),)*
                    _ => "SIGRT",
                }
            }

            /// What it does where no handler is installed.
            pub fn default_action(self) -> Default {
                match self.0 {
                    $($number => Default::$default,)*
                    _ => Default::Terminate,
                }
            }
        }
    };
}

signals! {
    HUP = 1, Terminate;
    INT = 2, Terminate;
    QUIT = 3, Core;
    ILL = 4, Core;
    TRAP = 5, Core;
    ABRT = 6, Core;
    BUS = 7, Core;
    FPE = 8, Core;
    KILL = 9, Terminate;
    USR1 = 10, Terminate;
    SEGV = 11, Core;
    USR2 = 12, Terminate;
    PIPE = 13, Terminate;
    ALRM = 14, Terminate;
    TERM = 15, Terminate;
    STKFLT = 16, Terminate;
    CHLD = 17, Ignore;
    CONT = 18, Continue;
    STOP = 19, Stop;
    TSTP = 20, Stop;
    TTIN = 21, Stop;
    TTOU = 22, Stop;
    URG = 23, Ignore;
    XCPU = 24, Core;
    XFSZ = 25, Core;
    VTALRM = 26, Terminate;
    PROF = 27, Terminate;
    WINCH = 28, Ignore;
    IO = 29, Terminate;
    PWR = 30, Terminate;
    SYS = 31, Core;
}

impl Signal {
    /// The first of the signals that queue.
    pub const REALTIME_MIN: Self = Self(32);
    /// The highest number.
    pub const MAX: u32 = 64;

    /// The signal of that number, if there is one.
    pub fn new(number: u32) -> Option<Self> {
        (1..=Self::MAX)
            .contains(&number)
            .then_some(Self(number as u8))
    }

    /// Its number, 1 to 64.
    pub fn number(self) -> u32 {
        u32::from(self.0)
    }

    /// Whether each sending is delivered, not just the fact.
    pub fn is_realtime(self) -> bool {
        self >= Self::REALTIME_MIN
    }

    /// Position in tables, 0 to 63.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0) - 1
    }
}

/// A set of signals; bit n-1 is signal n, as in Linux's `sigset_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, core::default::Default)]
pub struct SignalSet(pub u64);

impl SignalSet {
    /// No signal.
    pub const EMPTY: Self = Self(0);
    /// Every signal.
    pub const ALL: Self = Self(u64::MAX);
    /// The two that cannot be blocked, ignored or caught.
    pub const UNBLOCKABLE: Self = Self::of(&[Signal::KILL, Signal::STOP]);
    /// The signals of a thread's own mistakes: they are delivered before others.
    pub const SYNCHRONOUS: Self = Self::of(&[
        Signal::SEGV,
        Signal::BUS,
        Signal::ILL,
        Signal::TRAP,
        Signal::FPE,
        Signal::SYS,
    ]);
    /// Signals whose codes above zero are about something of their own (`si_code`).
    pub const WITH_OWN_CODES: Self = Self::SYNCHRONOUS.union(Self::of(&[Signal::CHLD]));

    /// The signals that stop a process.
    pub const STOPS: Self = Self::of(&[Signal::STOP, Signal::TSTP, Signal::TTIN, Signal::TTOU]);

    /// The set of these.
    pub const fn of(signals: &[Signal]) -> Self {
        let mut bits = 0;
        let mut index = 0;
        while index < signals.len() {
            bits |= 1 << (signals[index].0 - 1);
            index += 1;
        }
        Self(bits)
    }

    /// Those of both.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `signal` is in it.
    pub fn contains(self, signal: Signal) -> bool {
        self.0 >> signal.index() & 1 != 0
    }

    /// With `signal`.
    #[must_use]
    pub fn with(self, signal: Signal) -> Self {
        Self(self.0 | 1 << signal.index())
    }

    /// Without the signals of `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether no signal is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The signal to deliver first: synchronous ones, then the lowest number.
    pub fn first(self) -> Option<Signal> {
        let urgent = self & Self::SYNCHRONOUS;
        let bits = if urgent.is_empty() { self.0 } else { urgent.0 };
        Signal::new(bits.trailing_zeros() + 1)
    }
}

impl BitAnd for SignalSet {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for SignalSet {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Not for SignalSet {
    type Output = Self;
    fn not(self) -> Self {
        Self(!self.0)
    }
}
