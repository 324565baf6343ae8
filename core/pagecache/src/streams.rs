//! What is read ahead.
//!
//! Who reads on where an earlier read ended gets twice as much as then, up to a bound; who
//! begins a file is taken for somebody who will read on; who jumps gets what it asks for. A file
//! is read at a few places at once (several programs, a merge of several parts), so a few places
//! are remembered, and the one that was used longest ago is forgotten.
//!
//! Only misses come here: as long as what was read ahead lasts, nobody asks.

use core::ops::Range;

/// Places at which a file is read on at once.
const STREAMS: usize = 4;
/// Pages that a reader gets at the beginning of a file.
const FIRST_PAGES: u64 = 32;
/// Pages that are read at once at most.
pub const AHEAD_MAX_PAGES: u64 = 256;

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// The page behind the last that was read.
    next: u64,
    pages: u64,
    used: u64,
}

/// Where one file was read last.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    streams: [Stream; STREAMS],
    clock: u64,
}

impl Streams {
    /// The pages to be read for who misses page `first` and asks for `asked` pages of a file of
    /// `end` pages: `first` at least.
    pub fn window(&mut self, first: u64, asked: u64, end: u64) -> Range<u64> {
        self.clock += 1;
        let clock = self.clock;
        let known = |stream: &&mut Stream| stream.pages != 0 && stream.next == first;
        let found = self.streams.iter_mut().find(known);
        let (stream, pages) = match found {
            Some(stream) => {
                let pages = stream.pages.saturating_mul(2);
                (Some(stream), pages)
            }
            None => {
                let oldest = self.streams.iter_mut().min_by_key(|stream| stream.used);
                (oldest, if first == 0 { FIRST_PAGES } else { 1 })
            }
        };
        let pages = pages.max(asked).clamp(1, AHEAD_MAX_PAGES);
        let until = first
            .saturating_add(pages)
            .min(end)
            .max(first.saturating_add(1));
        if let Some(stream) = stream {
            *stream = Stream {
                next: until,
                pages,
                used: clock,
            };
        }
        first..until
    }
}

#[cfg(test)]
mod tests {
    use super::{AHEAD_MAX_PAGES, Streams};

    #[test]
    fn who_reads_on_gets_twice_as_much_up_to_a_bound() {
        let mut streams = Streams::default();
        let (mut at, mut sizes) = (0, std::vec::Vec::new());
        for _ in 0..6 {
            let window = streams.window(at, 1, 1 << 20);
            sizes.push(window.end - window.start);
            at = window.end;
        }
        assert_eq!(sizes, [32, 64, 128, 256, 256, 256]);
        assert_eq!(sizes.last(), Some(&AHEAD_MAX_PAGES));
    }

    #[test]
    fn who_jumps_gets_what_it_asks_for() {
        let mut streams = Streams::default();
        for page in [900, 17, 400, 18_000, 5] {
            assert_eq!(streams.window(page, 2, 1 << 20), page..page + 2);
        }
    }

    #[test]
    fn two_who_read_one_file_in_order_both_get_more_and_more() {
        let mut streams = Streams::default();
        let (mut one, mut other) = (0, 5000);
        for _ in 0..10 {
            one = streams.window(one, 1, 1 << 20).end;
            other = streams.window(other, 1, 1 << 20).end;
        }
        assert!(one > 1000 && other > 5600, "{one} {other}");
    }

    #[test]
    fn nothing_behind_the_end_is_read() {
        let mut streams = Streams::default();
        assert_eq!(streams.window(0, 100, 7), 0..7);
        assert_eq!(streams.window(9, 1, 7), 9..10);
        assert_eq!(
            streams.window(u64::MAX - 1, u64::MAX, u64::MAX),
            u64::MAX - 1..u64::MAX
        );
    }
}
