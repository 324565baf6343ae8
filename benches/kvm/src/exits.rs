//! Exits by cause, as the kernel's histograms of `kvm_exit` and `kvm_msr` say them.

/// Why a virtual CPU came back to the hypervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The guest armed its timer.
    Timer,
    /// The guest acknowledged an interrupt.
    Acknowledge,
    /// The guest opened interrupts, and one was waiting for that.
    Window,
    /// The hypervisor itself was interrupted.
    Interrupt,
    /// A page that is a device's, which is a doorbell, or one that was not present.
    Page,
    /// The guest had nothing to do.
    Halt,
    /// Everything else.
    Other,
}

impl Cause {
    /// In the order of the page.
    pub const ALL: [Self; 7] = [
        Self::Timer,
        Self::Acknowledge,
        Self::Window,
        Self::Interrupt,
        Self::Page,
        Self::Halt,
        Self::Other,
    ];

    /// Its name on the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timer => "timer armed",
            Self::Acknowledge => "interrupt acknowledged (EOI)",
            Self::Window => "interrupt window",
            Self::Interrupt => "interrupt of the host",
            Self::Page => "doorbell (or a page not present)",
            Self::Halt => "halt",
            Self::Other => "other",
        }
    }

    /// Of an exit code (AMD APM volume 2, appendix C). Accesses to registers are told apart
    /// by [`Cause::of_register`].
    fn of_code(code: u32) -> Option<Self> {
        match code {
            MSR => None,
            0x60 => Some(Self::Interrupt),
            0x64 => Some(Self::Window),
            0x78 => Some(Self::Halt),
            0x400 => Some(Self::Page),
            _ => Some(Self::Other),
        }
    }

    /// Of the number of a register (MSR): the TSC deadline, the timer's count and EOI of the x2APIC.
    fn of_register(register: u32) -> Self {
        match register {
            0x6e0 | 0x838 => Self::Timer,
            0x80b => Self::Acknowledge,
            _ => Self::Other,
        }
    }
}

/// The exit code of RDMSR and WRMSR.
const MSR: u32 = 0x7c;

/// Exits by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Exits([f64; Cause::ALL.len()]);

impl Exits {
    /// Where nothing was counted.
    pub const NONE: Self = Self([f64::NAN; Cause::ALL.len()]);

    /// Of lines such as `{ exit_reason:  120 } hitcount:  7` and
    /// `{ write: 1, ecx: 1760 } hitcount: 3`.
    pub fn parse(histograms: &str) -> Self {
        let mut exits = Self::default();
        for line in histograms.lines() {
            let Some((key, count)) = line.split_once("} hitcount:") else {
                continue;
            };
            let count: f64 = count.trim().parse().unwrap_or(0.0);
            let cause = match (number(key, "exit_reason:"), number(key, "ecx:")) {
                (Some(code), _) => Cause::of_code(code),
                (None, Some(register)) => Some(Cause::of_register(register)),
                (None, None) => None,
            };
            if let Some(cause) = cause {
                exits.0[cause as usize] += count;
            }
        }
        exits
    }

    /// Those of one of `requests`.
    pub fn per(self, requests: f64) -> Self {
        Self(self.0.map(|count| count / requests))
    }

    /// With this cause.
    pub fn of(&self, cause: Cause) -> f64 {
        self.0[cause as usize]
    }

    /// All.
    pub fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    /// Those that the guest causes: the host's own ticks are the more per request the slower it is.
    pub fn of_guest(&self) -> f64 {
        self.total() - self.of(Cause::Interrupt)
    }
}

fn number(key: &str, label: &str) -> Option<u32> {
    let behind = key.split_once(label)?.1.trim_start();
    behind.split([' ', ',']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_to_registers_are_told_apart_and_counted_once() {
        let exits = Exits::parse(
            "# event histogram\n{ exit_reason:        124 } hitcount:         10\n\
             { exit_reason:        120 } hitcount:          4\n\n\
             { write:          1, ecx:       1760 } hitcount:          7\n\
             { write:          0, ecx:         27 } hitcount:          3\n    Hits: 14\n",
        );
        assert_eq!(exits.of(Cause::Timer), 7.0);
        assert_eq!(exits.of(Cause::Other), 3.0);
        assert_eq!(exits.of(Cause::Halt), 4.0);
        assert_eq!(exits.total(), 14.0);
        assert_eq!(exits.per(2.0).total(), 7.0);
    }

    #[test]
    fn interrupts_of_the_host_are_not_the_guests() {
        let exits =
            Exits::parse("{ exit_reason: 96 } hitcount: 9\n{ exit_reason: 120 } hitcount: 4\n");
        assert_eq!((exits.total(), exits.of_guest()), (13.0, 4.0));
    }
}
