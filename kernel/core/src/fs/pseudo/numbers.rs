//! Sets of numbers as the kernel's files show them.

use super::Text;
use core::fmt::{Result, Write};

/// Numbers, which ascend, as a list of ranges: `0-2,5`.
pub fn write_list(text: &mut Text, numbers: impl Iterator<Item = usize>) -> Result {
    let mut run: Option<(usize, usize)> = None;
    let mut is_first = true;
    let mut write_run = |text: &mut Text, (first, last): (usize, usize)| {
        let comma = if is_first { "" } else { "," };
        is_first = false;
        match first == last {
            true => write!(text, "{comma}{first}"),
            false => write!(text, "{comma}{first}-{last}"),
        }
    };
    for number in numbers {
        run = match run {
            Some((first, last)) if last + 1 == number => Some((first, number)),
            Some(ended) => {
                write_run(text, ended)?;
                Some((number, number))
            }
            None => Some((number, number)),
        };
    }
    run.map_or(Ok(()), |last| write_run(text, last))?;
    text.write_char('\n')
}

/// Numbers below 32 as a mask: `00000005`.
pub fn write_mask(text: &mut Text, numbers: impl Iterator<Item = usize>) -> Result {
    let mask = numbers.fold(0u32, |mask, number| {
        mask | 1u32.checked_shl(number as u32).unwrap_or(0)
    });
    writeln!(text, "{mask:08x}")
}
