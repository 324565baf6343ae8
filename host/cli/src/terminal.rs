//! The user's terminal while it belongs to the machine.

use std::io::IsTerminal;

use rustix::termios::{self, OptionalActions, Termios};

/// The terminal in raw mode; dropping it restores what was before. Keys go to the
/// machine as they are, for its own line discipline to interpret.
#[derive(Debug)]
pub struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    /// Switches standard input to raw mode if it is a terminal.
    pub fn enter() -> Option<Self> {
        if !is_terminal() {
            return None;
        }
        let before = termios::tcgetattr(std::io::stdin()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        // Output keeps its translation: the machine's console sends line feeds too.
        raw.output_modes = before.output_modes;
        termios::tcsetattr(std::io::stdin(), OptionalActions::Now, &raw).ok()?;
        Some(Self { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = termios::tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Whether somebody sits at standard input.
pub fn is_terminal() -> bool {
    std::io::stdin().is_terminal()
}
