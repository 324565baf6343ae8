//! Terminals: the console and pseudo terminals.
//!
//! ```text
//! keyboard or pty master ─▶ Discipline::input ─▶ queue ─▶ read(2)
//!                               │ echo, signals
//! write(2) ─▶ Discipline::output ─▶ screen or pty master
//! ```
//!
//! `discipline` is the line discipline as a pure state machine (Linux's N_TTY): bytes in,
//! bytes and signals out. A [`Terminal`] puts a lock, waiting and a [`driver`] around it;
//! `job` decides which programs may use it; `pty` is the other end of a pseudo terminal;
//! `console` is what process 1 has as its input and output: a terminal, or streams that do
//! not claim to be one, through `ports` of the host or the `serial` port.
//!
//! Lock order: a terminal's lock, then the ports' device, then pollees; signals are sent
//! without it.
#![no_std]
#![forbid(unsafe_code)]

use task::family;

extern crate alloc;

pub mod console;
mod devices;
mod discipline;
mod driver;
mod file;
mod ioctl;
mod job;
mod packet;
mod ports;
mod pty;
mod serial;
mod stream;
mod terminal;
mod termio;
mod termios;

pub use file::TerminalFile;
pub use job::controlling_terminal;
pub use pty::{Master, open_unlocked_master};
pub use terminal::Terminal;

/// Registers the terminals' devices, sets the console up and hears of sessions that end;
/// once at boot, before /dev is filled.
pub fn init(host: console::Host) {
    devices::register_all();
    console::init(host);
    family::on_session_end(job::leave_session);
}
