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

/// Bits of a word of a mask.
const MASK_WORD_BITS: usize = 32;

/// Numbers below `count`, which ascend, as a mask of `count` bits: `3,00000005`.
pub fn write_mask(
    text: &mut Text,
    numbers: impl Iterator<Item = usize> + Clone,
    count: usize,
) -> Result {
    let words = count.div_ceil(MASK_WORD_BITS).max(1);
    for index in (0..words).rev() {
        let bits = index * MASK_WORD_BITS..(index + 1) * MASK_WORD_BITS;
        let own = numbers.clone().filter(|number| bits.contains(number));
        let word = own.fold(0u32, |word, number| word | 1 << (number - bits.start));
        let digits = count.min(bits.end).saturating_sub(bits.start).div_ceil(4);
        let comma = if index == 0 { "" } else { "," };
        write!(text, "{word:0digits$x}{comma}")?;
    }
    text.write_char('\n')
}
