//! Terminals: the console and pseudo terminals.
//!
//! ```text
//! keyboard or pty master ─▶ Discipline::input ─▶ queue ─▶ read(2)
//!                               │ echo, signals
//! write(2) ─▶ Discipline::output ─▶ screen or pty master
//! ```
//!
//! `discipline` is the line discipline as a pure state machine (Linux' N_TTY): bytes in,
//! bytes and signals out. A [`Terminal`] puts a lock, waiting and a [`screen`] around it;
//! `job` decides which programs may use it; `pty` is the other end of a pseudo terminal;
//! `console` is the serial port, as a terminal or, where the host has none, as a plain
//! stream that does not claim to be one.
//!
//! Lock order: a terminal's lock, then pollees; signals are sent without it.

pub mod console;
mod discipline;
mod file;
mod ioctl;
mod job;
mod pty;
mod screen;
mod terminal;
mod termios;

pub use file::TerminalFile;
pub use job::{controlling_terminal, init, leave_session};
pub use pty::{Master, open_master, open_slave};
pub use terminal::Terminal;
