//! `struct perf_event_attr` (linux/perf_event.h): what its words and bits mean.

use base::VirtAddr;
use mm::user;
use perf::{AttrBits, Attributes, Fields, Format, Kind, MAX_SAMPLE_RATE, Wakeup};

use linux_abi::errno::Errno;

/// Words of the longest version that we know.
const WORDS: usize = 17;
/// Bytes of the first version.
const BYTES_MIN: u32 = 64;
const BYTES_MAX: u32 = 4096;

const TYPE_SOFTWARE: u32 = 1;

// Its words.
const SAMPLE_PERIOD: usize = 2;
const SAMPLE_TYPE: usize = 3;
const READ_FORMAT: usize = 4;
const FLAGS: usize = 5;
const WAKEUP: usize = 6;

const NANOSECONDS: u64 = 1_000_000_000;

// Bits of the flags, besides those that are `AttrBits`.
const DISABLED: u64 = 1 << 0;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const FREQUENCY: u64 = 1 << 10;
const ENABLE_ON_EXEC: u64 = 1 << 12;
const WATERMARK: u64 = 1 << 14;
/// Records that we do not write, and rings that overwrite themselves: clock numbers of the
/// program's choice, switches, a ring written backwards, namespaces, AUX, control groups, build
/// numbers, events that are not for other processes or end at execve(2), signals.
const UNKNOWN: u64 = 1 << 25
    | 1 << 26
    | 1 << 27
    | 1 << 28
    | 1 << 31
    | 1 << 32
    | 1 << 34
    | 1 << 35
    | 1 << 36
    | 1 << 37;

/// The structure as the program has written it.
pub struct Raw([u64; WORDS]);

impl Raw {
    /// Reads as much of it as the program has. One that has more is told how much we know,
    /// unless the rest is zero.
    pub fn read(at: VirtAddr) -> Result<Self, Errno> {
        let [_, bytes] = user::read::<[u32; 2]>(at)?;
        let bytes = if bytes == 0 { BYTES_MIN } else { bytes };
        let known = size_of::<Self>() as u32;
        let is_known = (BYTES_MIN..=BYTES_MAX).contains(&bytes)
            && is_zero(at + u64::from(known), bytes.saturating_sub(known) as usize)?;
        if !is_known {
            user::write(at + 4, known)?;
            return Err(Errno::E2BIG);
        }
        let mut words = [0u64; WORDS];
        let mut raw = [0u8; size_of::<[u64; WORDS]>()];
        let read = raw
            .get_mut(..bytes.min(known) as usize)
            .ok_or(Errno::EINVAL)?;
        user::copy_in(at, read)?;
        for (word, bytes) in words.iter_mut().zip(raw.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Ok(Self(words))
    }

    fn flags(&self) -> u64 {
        self.0[FLAGS]
    }

    /// Whether the kernel's part is not asked for.
    pub fn leaves_kernel_out(&self) -> bool {
        self.flags() & EXCLUDE_KERNEL != 0
    }

    /// What it asks for.
    ///
    /// Errors: `ENOENT` for an event that this machine has not, `EOPNOTSUPP` for samples of
    /// anything but a clock, `EINVAL`.
    pub fn decode(&self) -> Result<Attributes, Errno> {
        let flags = self.flags();
        let kind = kind(self.0[0] as u32, self.0[1])?;
        let format = Format::from_bits(self.0[READ_FORMAT]).ok_or(Errno::EINVAL)?;
        let fields = Fields::from_bits(self.0[SAMPLE_TYPE]).ok_or(Errno::EINVAL)?;
        if flags & UNKNOWN != 0 {
            return Err(Errno::EINVAL);
        }
        if flags & INHERIT != 0 && format.contains(Format::GROUP) {
            return Err(Errno::EINVAL);
        }
        Ok(Attributes {
            kind,
            is_disabled: flags & DISABLED != 0,
            is_inherited: flags & INHERIT != 0,
            starts_at_exec: flags & ENABLE_ON_EXEC != 0,
            format,
            period_ns: self.period(kind)?,
            fields,
            hears: AttrBits::from_bits_truncate(flags),
            wakeup: match flags & WATERMARK {
                0 => Wakeup::Records(self.0[WAKEUP] as u32),
                _ => Wakeup::Bytes(self.0[WAKEUP] as u32),
            },
            only_on: None,
        })
    }

    /// Nanoseconds from sample to sample, if it asks for samples of what there are any of.
    fn period(&self, kind: Kind) -> Result<Option<u64>, Errno> {
        let asked = self.0[SAMPLE_PERIOD];
        let is_frequency = self.flags() & FREQUENCY != 0;
        let is_bad = match is_frequency {
            true => asked > u64::from(MAX_SAMPLE_RATE),
            false => asked >> 63 != 0,
        };
        match (asked, kind) {
            _ if is_bad => Err(Errno::EINVAL),
            (0, _) | (_, Kind::Nothing) => Ok(None),
            (hertz, Kind::Clock) if is_frequency => Ok(Some(NANOSECONDS / hertz)),
            (period, Kind::Clock) => Ok(Some(period)),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }
}

/// Whether the program's `bytes` bytes from `at` on are zero; there are a page of them at most.
fn is_zero(at: VirtAddr, bytes: usize) -> Result<bool, Errno> {
    let mut part = [0; 256];
    for start in (0..bytes).step_by(part.len()) {
        let len = part.len().min(bytes - start);
        let read = part.get_mut(..len).ok_or(Errno::EINVAL)?;
        user::copy_in(at + start as u64, read)?;
        if read.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `PERF_COUNT_SW_*`.
fn kind(source: u32, number: u64) -> Result<Kind, Errno> {
    if source != TYPE_SOFTWARE {
        return Err(Errno::ENOENT);
    }
    Ok(match number {
        0 | 1 => Kind::Clock,
        2 => Kind::Faults,
        3 => Kind::Switches,
        4 => Kind::Migrations,
        5 => Kind::MinorFaults,
        6 => Kind::MajorFaults,
        // Alignment and emulation faults, the dummy, programs' output, switches of control groups.
        7..=11 => Kind::Nothing,
        _ => return Err(Errno::ENOENT),
    })
}
