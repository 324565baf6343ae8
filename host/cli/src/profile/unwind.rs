//! From a program's registers and the top of its stack to its return addresses.
//!
//! Where a function has an unwind table, that says where its caller's registers are; elsewhere
//! (code that a runtime generates) the frame pointer is tried. The walk ends where a stack
//! ends, where the copy of it ends, and where nothing makes sense any more.

use profile::{Stack, UserFrame};

use super::cfi::{REGISTERS, Row, Start};

const WORD_BYTES: u64 = 8;
const FRAMES_MAX: usize = 256;
const RBP: usize = 0;
const RSP: usize = REGISTERS.len() - 1;
/// Bytes of an entry of a procedure linkage table, and where in it the stack has grown.
const STUB_BYTES: u64 = 16;
const STUB_PUSHED: u64 = 11;

/// Who knows how to unwind an address: the row for it.
pub trait Rows {
    /// The row; `None` if the address has none.
    fn row(&self, address: u64) -> Option<Row>;
    /// Whether a program's code can lie there.
    fn is_code(&self, address: u64) -> bool;
}

/// A stack, unwound.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Unwound {
    /// Where the program stands, then where each function returns to.
    pub addresses: Vec<u64>,
    /// The copy of the stack ended before the stack did.
    pub is_cut: bool,
}

#[derive(Clone, Copy)]
struct Frame {
    rip: u64,
    /// By [`REGISTERS`]; `None` where the value is lost.
    registers: [Option<u64>; REGISTERS.len()],
}

enum Step {
    To(Frame),
    Cut,
    End,
}

/// Unwinds the program's stack.
pub fn unwind(stack: &Stack<'_>, rows: &impl Rows) -> Unwound {
    let mut unwound = Unwound::default();
    let Some(user) = stack.user else {
        return unwound;
    };
    let copy = Copy {
        start: user.rsp & !(WORD_BYTES - 1),
        words: stack.stack,
    };
    let mut frame = Frame::of(&user);
    for depth in 0..FRAMES_MAX {
        unwound.addresses.push(frame.rip);
        // A return address lies behind its call, perhaps in the next function.
        let address = if depth == 0 { frame.rip } else { frame.rip - 1 };
        match step(&frame, address, &copy, rows) {
            Step::To(caller) => frame = caller,
            Step::Cut => {
                unwound.is_cut = true;
                break;
            }
            Step::End => break,
        }
    }
    unwound
}

impl Frame {
    fn of(user: &UserFrame) -> Self {
        Self {
            rip: user.rip,
            registers: [
                user.rbp, user.rbx, user.r12, user.r13, user.r14, user.r15, user.rsp,
            ]
            .map(Some),
        }
    }
}

/// The copied words and where they were.
struct Copy<'a> {
    start: u64,
    words: &'a [u64],
}

impl Copy<'_> {
    fn word(&self, at: u64) -> Option<u64> {
        let offset = at.checked_sub(self.start)?;
        if !offset.is_multiple_of(WORD_BYTES) {
            return None;
        }
        let index = usize::try_from(offset / WORD_BYTES).ok()?;
        self.words.get(index).copied()
    }

    fn is_behind(&self, at: u64) -> bool {
        at >= self.start + self.words.len() as u64 * WORD_BYTES
    }
}

fn step(frame: &Frame, address: u64, copy: &Copy<'_>, rows: &impl Rows) -> Step {
    match rows.row(address) {
        Some(row) => by_table(frame, &row, copy, rows),
        None => by_frame_pointer(frame, copy, rows),
    }
}

fn by_table(frame: &Frame, row: &Row, copy: &Copy<'_>, rows: &impl Rows) -> Step {
    let start = match row.start {
        Start::Above(register, offset) => {
            frame.registers[register].map(|value| value.wrapping_add_signed(offset))
        }
        Start::Stub => frame.registers[RSP].map(|rsp| {
            let has_pushed = frame.rip % STUB_BYTES >= STUB_PUSHED;
            rsp + WORD_BYTES * (1 + u64::from(has_pushed))
        }),
    };
    let (Some(start), Some(return_to)) = (start, row.return_to) else {
        return Step::End;
    };
    let at = start.wrapping_add_signed(return_to);
    let Some(rip) = copy.word(at) else {
        return if copy.is_behind(at) {
            Step::Cut
        } else {
            Step::End
        };
    };
    let mut registers = frame.registers;
    for (register, saved) in registers.iter_mut().zip(row.saved) {
        if let Some(offset) = saved {
            *register = copy.word(start.wrapping_add_signed(offset));
        }
    }
    registers[RSP] = Some(start);
    to(Frame { rip, registers }, frame, rows)
}

fn by_frame_pointer(frame: &Frame, copy: &Copy<'_>, rows: &impl Rows) -> Step {
    let Some(rbp) = frame.registers[RBP] else {
        return Step::End;
    };
    let (Some(next), Some(rip)) = (copy.word(rbp), copy.word(rbp.wrapping_add(WORD_BYTES))) else {
        return Step::End;
    };
    let mut registers = [None; REGISTERS.len()];
    registers[RBP] = Some(next);
    registers[RSP] = Some(rbp + 2 * WORD_BYTES);
    to(Frame { rip, registers }, frame, rows)
}

/// Goes to the caller if there can be one: stacks only shrink on the way out.
fn to(caller: Frame, from: &Frame, rows: &impl Rows) -> Step {
    if caller.registers[RSP] > from.registers[RSP] && rows.is_code(caller.rip) {
        Step::To(caller)
    } else {
        Step::End
    }
}

#[cfg(test)]
mod tests {
    use profile::{Kind, Stamp, Who};

    use super::*;

    const CODE: std::ops::Range<u64> = 0x1000..0x4000;
    const RSP: u64 = 0x7000;

    /// Functions below 0x2000 keep no frame pointer and have saved `rbp` once they stand at an
    /// address with bit 8; the others have no table.
    struct Program;

    impl Rows for Program {
        fn row(&self, address: u64) -> Option<Row> {
            let has_pushed = address & 0x100 != 0;
            let mut saved = [None; REGISTERS.len()];
            saved[RBP] = has_pushed.then_some(-16);
            (address < 0x2000).then_some(Row {
                start: Start::Above(super::RSP, if has_pushed { 16 } else { 8 }),
                return_to: (address != 0x1fff).then_some(-8),
                saved,
            })
        }

        fn is_code(&self, address: u64) -> bool {
            CODE.contains(&address)
        }
    }

    fn unwind_from(rip: u64, rbp: u64, words: &[u64]) -> Unwound {
        let stamp = Stamp {
            kind: Kind::Sample,
            cpu: 0,
            cycles: 0,
        };
        let user = UserFrame {
            rip,
            rbp,
            rsp: RSP,
            ..UserFrame::default()
        };
        let stack = Stack {
            stamp,
            who: Who::default(),
            is_idle: false,
            extra: 0,
            space: 0,
            user: Some(user),
            kernel: &[],
            stack: words,
        };
        unwind(&stack, &Program)
    }

    #[test]
    fn functions_without_frame_pointers_are_unwound_by_their_tables() {
        let unwound = unwind_from(0x1000, 0, &[0x1180, 0, 0x2000, 7, 7, 7, 7]);
        // The last one, by its return address less one, is the outermost function.
        assert_eq!(unwound.addresses, [0x1000, 0x1180, 0x2000]);
        assert!(!unwound.is_cut);
    }

    #[test]
    fn code_without_a_table_is_unwound_by_its_frame_pointer() {
        let words = [7, RSP + 32, 0x1080, 7, 0, 0x9999];
        let unwound = unwind_from(0x2500, RSP + 8, &words);
        assert_eq!(unwound.addresses, [0x2500, 0x1080]);
    }

    #[test]
    fn a_saved_register_is_followed_from_frame_to_frame() {
        // A function without a table, called by one that has its caller's rbp saved.
        let words = [RSP + 16, 0x2600, RSP + 32, 0x2700, 0, 0];
        let unwound = unwind_from(0x1100, 0, &words);
        assert_eq!(unwound.addresses, [0x1100, 0x2600, 0x2700]);
    }

    #[test]
    fn a_stack_deeper_than_its_copy_says_so() {
        let unwound = unwind_from(0x1000, 0, &[0x1080]);
        assert_eq!(unwound.addresses, [0x1000, 0x1080]);
        assert!(unwound.is_cut);
    }

    #[test]
    fn nonsense_on_the_stack_ends_the_walk() {
        let unwound = unwind_from(0x1000, 0, &[0xdead_beef, 0x1000]);
        assert_eq!(unwound.addresses, [0x1000]);
        let loops = unwind_from(0x2500, RSP, &[RSP, 0x2500, 0]);
        assert_eq!(loops.addresses, [0x2500, 0x2500]);
    }
}
