//! Blocks of a disk that follow each other.

/// A number of blocks.
pub type Blocks = u64;

/// Some blocks, at least one, whose end is a number: the constructor proves it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Extent {
    first: u64,
    count: Blocks,
}

impl Extent {
    /// `count` blocks from `first` on, unless they are none or pass the last number.
    pub const fn new(first: u64, count: Blocks) -> Option<Self> {
        match (count, first.checked_add(count)) {
            (0, _) | (_, None) => None,
            _ => Some(Self { first, count }),
        }
    }

    /// The first block.
    pub const fn first(self) -> u64 {
        self.first
    }

    /// How many there are.
    pub const fn count(self) -> Blocks {
        self.count
    }

    /// The block behind the last.
    pub const fn end(self) -> u64 {
        self.first + self.count
    }

    /// Whether some block is in both.
    pub const fn overlaps(self, other: Self) -> bool {
        self.first < other.end() && other.first < self.end()
    }

    /// The first `count` of them and the rest; at least one in each that is there.
    pub(crate) fn split_at(self, count: Blocks) -> (Option<Self>, Option<Self>) {
        let front = count.min(self.count);
        (
            Self::new(self.first, front),
            Self::new(self.first + front, self.count - front),
        )
    }

    /// Both as one, if `next` begins where this one ends.
    pub(crate) fn joined(self, next: Self) -> Option<Self> {
        match self.end() == next.first {
            true => Self::new(self.first, self.count + next.count),
            false => None,
        }
    }
}
