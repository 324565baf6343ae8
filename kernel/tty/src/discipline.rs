//! The line discipline: editing, echo, signals, and the processing of output.
//!
//! Input goes into `queue`. In canonical mode its tail, from `line_start` on, is the line
//! being edited, which nobody may read yet; a unit that ends a line says so. An end of
//! file is a unit without a byte. Everything is bounded: what does not fit is dropped
//! with a bell.

use alloc::collections::VecDeque;

use task::signal::Signal;

use super::termios::{Input, Local, Output, Special, Termios};

/// Bytes of input that wait at most (N_TTY_BUF_SIZE).
const QUEUE_MAX: usize = 4096;
/// Columns between tab stops.
const TAB_COLUMNS: usize = 8;
/// Most bytes that one byte of output becomes: a tab.
pub(super) const EXPANSION_MAX: usize = TAB_COLUMNS;

/// A place in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    /// A byte inside a line.
    Byte(u8),
    /// The byte that ends a line.
    LineEnd(u8),
    /// The end of the input, without a byte.
    EndOfFile,
}

/// What an input byte asks of the terminal besides its place in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Effect {
    /// To the programs in the foreground.
    pub(super) signal: Option<Signal>,
    /// Something became readable.
    pub(super) readable: bool,
    /// Output may go on.
    pub(super) resumed: bool,
}

/// The state of a line.
pub(super) struct Discipline {
    pub(super) termios: Termios,
    queue: VecDeque<Unit>,
    line_start: usize,
    takes_next_literally: bool,
    pub(super) is_output_halted: bool,
    column: usize,
    /// The column in which the line being edited begins.
    line_column: usize,
    /// What is to appear on the screen because of input.
    pub(super) echo: VecDeque<u8>,
}

impl Discipline {
    pub(super) fn new() -> Self {
        Self {
            termios: Termios::default(),
            queue: VecDeque::new(),
            line_start: 0,
            takes_next_literally: false,
            is_output_halted: false,
            column: 0,
            line_column: 0,
            echo: VecDeque::new(),
        }
    }

    fn local(&self, flag: Local) -> bool {
        self.termios.local.contains(flag)
    }

    fn in_flag(&self, flag: Input) -> bool {
        self.termios.input.contains(flag)
    }

    /// Takes a byte from the keyboard.
    pub(super) fn input(&mut self, byte: u8) -> Effect {
        let byte = if self.in_flag(Input::ISTRIP) {
            byte & 0x7f
        } else {
            byte
        };
        if core::mem::take(&mut self.takes_next_literally) {
            return self.insert(byte);
        }
        if let Some(effect) = self.flow_control(byte).or_else(|| self.signal(byte)) {
            return effect;
        }
        let Some(byte) = self.translate(byte) else {
            return Effect::default();
        };
        if self.termios.is_canonical() {
            self.edit(byte)
        } else {
            self.insert(byte)
        }
    }

    fn flow_control(&mut self, byte: u8) -> Option<Effect> {
        if !self.in_flag(Input::IXON) {
            return None;
        }
        let resumes = Effect {
            resumed: true,
            ..Effect::default()
        };
        if self.termios.is(Special::Start, byte) {
            self.is_output_halted = false;
            return Some(resumes);
        }
        if self.termios.is(Special::Stop, byte) {
            self.is_output_halted = true;
            return Some(Effect::default());
        }
        if self.is_output_halted && self.in_flag(Input::IXANY) {
            self.is_output_halted = false;
        }
        None
    }

    fn signal(&mut self, byte: u8) -> Option<Effect> {
        if !self.local(Local::ISIG) {
            return None;
        }
        let keys = [
            (Special::Intr, Signal::INT),
            (Special::Quit, Signal::QUIT),
            (Special::Susp, Signal::TSTP),
        ];
        let (_, signal) = keys
            .into_iter()
            .find(|(key, _)| self.termios.is(*key, byte))?;
        if !self.local(Local::NOFLSH) {
            self.flush_input();
            self.is_output_halted = false;
        }
        self.echo_byte(byte);
        Some(Effect {
            signal: Some(signal),
            resumed: true,
            readable: false,
        })
    }

    fn translate(&self, byte: u8) -> Option<u8> {
        let is_lowered = self.in_flag(Input::IUCLC) && self.local(Local::IEXTEN);
        match byte {
            byte if is_lowered && byte.is_ascii_uppercase() => Some(byte.to_ascii_lowercase()),
            b'\r' if self.in_flag(Input::IGNCR) => None,
            b'\r' if self.in_flag(Input::ICRNL) => Some(b'\n'),
            b'\n' if self.in_flag(Input::INLCR) => Some(b'\r'),
            byte => Some(byte),
        }
    }

    /// A byte in canonical mode.
    fn edit(&mut self, byte: u8) -> Effect {
        let is = |special| self.termios.is(special, byte);
        let extended = self.local(Local::IEXTEN);
        if is(Special::Erase) {
            self.erase_character();
        } else if extended && is(Special::Werase) {
            self.erase_word();
        } else if is(Special::Kill) {
            self.kill_line();
        } else if extended && is(Special::Lnext) {
            self.takes_next_literally = true;
        } else if extended && is(Special::Reprint) && self.local(Local::ECHO) {
            self.reprint(byte);
        } else if is(Special::Eof) {
            return self.end_line(Unit::EndOfFile);
        } else if byte == b'\n' {
            if self.local(Local::ECHO) || self.local(Local::ECHONL) {
                self.show(b'\n');
            }
            return self.end_line(Unit::LineEnd(byte));
        } else if is(Special::Eol) || extended && is(Special::Eol2) {
            self.echo_byte(byte);
            return self.end_line(Unit::LineEnd(byte));
        } else {
            return self.insert(byte);
        }
        Effect::default()
    }

    /// Puts a byte into the queue; in canonical mode it becomes readable with its line.
    fn insert(&mut self, byte: u8) -> Effect {
        let is_canonical = self.termios.is_canonical();
        // Room for the end of the line is kept.
        if self.queue.len() >= QUEUE_MAX - usize::from(is_canonical) {
            self.bell();
            return Effect::default();
        }
        if self.queue.len() == self.line_start {
            self.line_column = self.column;
        }
        self.queue.push_back(Unit::Byte(byte));
        self.echo_byte(byte);
        if is_canonical {
            return Effect::default();
        }
        self.line_start = self.queue.len();
        Effect {
            readable: true,
            ..Effect::default()
        }
    }

    fn end_line(&mut self, end: Unit) -> Effect {
        if self.queue.len() >= QUEUE_MAX {
            self.bell();
            return Effect::default();
        }
        self.queue.push_back(end);
        self.line_start = self.queue.len();
        Effect {
            readable: true,
            ..Effect::default()
        }
    }

    fn bell(&mut self) {
        if self.in_flag(Input::IMAXBEL) {
            self.show(0x07);
        }
    }

    /// The last byte of the line being edited.
    fn last(&self) -> Option<u8> {
        match self.queue.back() {
            Some(Unit::Byte(byte)) if self.queue.len() > self.line_start => Some(*byte),
            _ => None,
        }
    }

    /// Removes the last character; of UTF-8 all its bytes.
    fn erase_character(&mut self) {
        while let Some(byte) = self.last() {
            self.queue.pop_back();
            if !(self.in_flag(Input::IUTF8) && is_continuation(byte)) {
                self.wipe(byte);
                break;
            }
        }
    }

    fn erase_word(&mut self) {
        while self.last().is_some_and(|byte| !is_word(byte)) {
            self.erase_character();
        }
        while self.last().is_some_and(is_word) {
            self.erase_character();
        }
    }

    fn kill_line(&mut self) {
        if self.local(Local::ECHOKE) && self.local(Local::ECHOE) {
            while self.last().is_some() {
                self.erase_character();
            }
            return;
        }
        self.queue.truncate(self.line_start);
        if self.local(Local::ECHO) {
            self.echo_byte(self.termios.get(Special::Kill));
            if self.local(Local::ECHOK) {
                self.show(b'\n');
            }
        }
    }

    /// Takes a character that was erased off the screen.
    fn wipe(&mut self, byte: u8) {
        if !self.local(Local::ECHO) {
            return;
        }
        if !self.local(Local::ECHOE) {
            return self.echo_byte(self.termios.get(Special::Erase));
        }
        let columns = match byte {
            b'\t' => self.column.saturating_sub(self.edited_column()),
            byte if is_control(byte) => {
                if self.local(Local::ECHOCTL) {
                    2
                } else {
                    0
                }
            }
            _ => 1,
        };
        for _ in 0..columns {
            for shown in [0x08, b' ', 0x08] {
                self.show(shown);
            }
        }
    }

    /// The column behind the line being edited, by what was echoed of it.
    fn edited_column(&self) -> usize {
        let line = self.queue.range(self.line_start.min(self.queue.len())..);
        line.fold(self.line_column, |column, unit| match unit {
            Unit::Byte(b'\t') => (column / TAB_COLUMNS + 1) * TAB_COLUMNS,
            Unit::Byte(byte) if is_control(*byte) => column + 2,
            Unit::Byte(byte) if self.in_flag(Input::IUTF8) && is_continuation(*byte) => column,
            _ => column + 1,
        })
    }

    fn reprint(&mut self, key: u8) {
        self.echo_byte(key);
        self.show(b'\n');
        self.line_column = self.column;
        for index in self.line_start..self.queue.len() {
            if let Some(Unit::Byte(byte)) = self.queue.get(index).copied() {
                self.echo_byte(byte);
            }
        }
    }

    fn echo_byte(&mut self, byte: u8) {
        if !self.local(Local::ECHO) {
            return;
        }
        if self.local(Local::ECHOCTL) && is_control(byte) && byte != b'\t' {
            self.show(b'^');
            self.show(byte ^ 0x40);
        } else {
            self.show(byte);
        }
    }

    /// Puts a byte on the screen, as if a program had written it.
    fn show(&mut self, byte: u8) {
        let mut bytes = [0; EXPANSION_MAX];
        let len = self.output(byte, &mut bytes);
        if self.echo.len() < QUEUE_MAX {
            self.echo.extend(&bytes[..len]);
        }
    }

    /// Processes a byte that a program writes; returns how many bytes it has become.
    pub(super) fn output(&mut self, byte: u8, to: &mut [u8; EXPANSION_MAX]) -> usize {
        let flag = |flag| self.termios.output.contains(flag);
        if !flag(Output::OPOST) {
            to[0] = byte;
            return 1;
        }
        match byte {
            b'\n' if flag(Output::ONLCR) => {
                self.column = 0;
                to[..2].copy_from_slice(b"\r\n");
                2
            }
            b'\n' => {
                self.column = if flag(Output::ONLRET) { 0 } else { self.column };
                to[0] = b'\n';
                1
            }
            b'\r' if flag(Output::ONOCR) && self.column == 0 => 0,
            b'\r' => {
                self.column = 0;
                to[0] = if flag(Output::OCRNL) { b'\n' } else { b'\r' };
                1
            }
            b'\t' => self.output_tab(to),
            byte => {
                self.column = match byte {
                    0x08 => self.column.saturating_sub(1),
                    byte if is_control(byte) || is_continuation(byte) => self.column,
                    _ => self.column + 1,
                };
                to[0] = match self.termios.output.contains(Output::OLCUC) {
                    true => byte.to_ascii_uppercase(),
                    false => byte,
                };
                1
            }
        }
    }

    fn output_tab(&mut self, to: &mut [u8; EXPANSION_MAX]) -> usize {
        let spaces = TAB_COLUMNS - self.column % TAB_COLUMNS;
        self.column += spaces;
        if !self.termios.output.contains(Output::XTABS) {
            to[0] = b'\t';
            return 1;
        }
        to[..spaces].fill(b' ');
        spaces
    }

    /// Bytes of input that still fit.
    pub(super) fn room(&self) -> usize {
        QUEUE_MAX - self.queue.len()
    }

    /// Bytes that a read could take now, ends of file counted as one.
    pub(super) fn readable(&self) -> usize {
        self.line_start
    }

    /// Moves input to `to`: in canonical mode up to the end of a line. `None` if there is
    /// nothing, `Some(0)` at an end of file.
    pub(super) fn read(&mut self, to: &mut [u8]) -> Option<usize> {
        if self.line_start == 0 {
            return None;
        }
        let mut count = 0;
        while self.line_start != 0 {
            let Some(unit) = self.queue.front().copied() else {
                break;
            };
            let byte = match unit {
                Unit::EndOfFile => {
                    self.pop();
                    break;
                }
                Unit::Byte(byte) | Unit::LineEnd(byte) => byte,
            };
            let Some(place) = to.get_mut(count) else {
                break;
            };
            *place = byte;
            count += 1;
            self.pop();
            if matches!(unit, Unit::LineEnd(_)) && self.termios.is_canonical() {
                break;
            }
        }
        Some(count)
    }

    fn pop(&mut self) {
        self.queue.pop_front();
        self.line_start -= 1;
    }

    /// Forgets input that nobody has read.
    pub(super) fn flush_input(&mut self) {
        self.queue.clear();
        self.line_start = 0;
    }

    /// Changes the settings; in raw mode a line being edited becomes readable.
    pub(super) fn set_termios(&mut self, termios: Termios) {
        if self.termios.is_canonical() && !termios.is_canonical() {
            self.line_start = self.queue.len();
        }
        if !termios.input.contains(Input::IXON) {
            self.is_output_halted = false;
        }
        self.termios = termios;
    }
}

fn is_control(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Whether the byte is inside a UTF-8 character, not its first.
fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}
