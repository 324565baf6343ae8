//! What `FUTEX_WAKE_OP` does to its second word.

/// A change of a word, and the test of its old value.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    change: fn(old: u32, operand: u32) -> u32,
    operand: u32,
    test: fn(old: u32, against: u32) -> bool,
    against: u32,
}

/// The changes, by number.
const CHANGES: [fn(u32, u32) -> u32; 5] = [
    |_, operand| operand,
    u32::wrapping_add,
    |old, operand| old | operand,
    |old, operand| old & !operand,
    |old, operand| old ^ operand,
];

/// The comparisons, by number; the words are C's `int`.
const TESTS: [fn(u32, u32) -> bool; 6] = [
    |old, against| old == against,
    |old, against| old != against,
    |old, against| (old as i32) < against as i32,
    |old, against| old as i32 <= against as i32,
    |old, against| old as i32 > against as i32,
    |old, against| old as i32 >= against as i32,
];

/// The operand is the number of a bit.
const SHIFT_OPERAND: u32 = 8;

impl Operation {
    /// From its code: 4 bits change, 4 bits test, two signed numbers of 12 bits. `None` for a
    /// change or a test that does not exist.
    pub fn decode(code: u32) -> Option<Self> {
        let signed = |bits: u32| ((bits << 20) as i32 >> 20) as u32;
        let change = code >> 28;
        let operand = match (change & SHIFT_OPERAND, signed(code >> 12)) {
            (0, operand) => operand,
            (_, bit) => 1u32.wrapping_shl(bit),
        };
        Some(Self {
            change: *CHANGES.get((change & 7) as usize)?,
            operand,
            test: *TESTS.get((code >> 24 & 15) as usize)?,
            against: signed(code),
        })
    }

    /// The new value from the old one.
    pub fn change(&self, old: u32) -> u32 {
        (self.change)(old, self.operand)
    }

    /// Whether the second wake-up takes place, by the old value.
    pub fn is_second_woken(&self, old: u32) -> bool {
        (self.test)(old, self.against)
    }
}
