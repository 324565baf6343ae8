//! The console of a program.

use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::Duration;

use crate::Console;

/// Standard output, standard error and the clock.
pub struct Terminal;

impl Console for Terminal {
    fn print(&mut self, text: &str) -> bool {
        let mut out = io::stdout();
        out.write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .is_ok()
    }

    fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    fn complain(&mut self, text: &str) {
        // Nobody reads standard error: then there is nobody to tell.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    fn wait(&mut self, seconds: u32) -> bool {
        thread::sleep(Duration::from_secs(seconds.into()));
        true
    }
}
