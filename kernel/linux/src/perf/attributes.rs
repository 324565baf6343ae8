//! `struct perf_event_attr` (linux/perf_event.h): what its words and bits mean.

use base::VirtAddr;
use kernel::perf::{Attributes, Format, Kind};
use kernel::user;

use crate::errno::Errno;

/// Words of the longest version that we know.
const WORDS: usize = 17;
/// Bytes of the first version.
const BYTES_MIN: u32 = 64;
const BYTES_MAX: u32 = 4096;

const TYPE_SOFTWARE: u32 = 1;

/// The word that says how many events there are from sample to sample.
const SAMPLE_PERIOD: usize = 2;

// Bits of the fifth word.
const DISABLED: u64 = 1 << 0;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const ENABLE_ON_EXEC: u64 = 1 << 12;

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
        self.0[5]
    }

    /// Whether the kernel's part is not asked for.
    pub fn leaves_kernel_out(&self) -> bool {
        self.flags() & EXCLUDE_KERNEL != 0
    }

    /// What it asks for.
    ///
    /// Errors: `ENOENT` for an event that this machine has not, `EOPNOTSUPP` for samples, which
    /// are not taken, `EINVAL`.
    pub fn decode(&self) -> Result<Attributes, Errno> {
        let flags = self.flags();
        if self.0[SAMPLE_PERIOD] != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        let format = Format::from_bits(self.0[4]).ok_or(Errno::EINVAL)?;
        if flags & INHERIT != 0 && format.contains(Format::GROUP) {
            return Err(Errno::EINVAL);
        }
        Ok(Attributes {
            kind: kind(self.0[0] as u32, self.0[1])?,
            is_disabled: flags & DISABLED != 0,
            is_inherited: flags & INHERIT != 0,
            starts_at_exec: flags & ENABLE_ON_EXEC != 0,
            format,
        })
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
