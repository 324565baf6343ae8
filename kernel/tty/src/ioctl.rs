//! What programs ask of a terminal (ioctl_tty(2)); numbers and layouts are Linux's own.

use alloc::sync::Arc;

use base::VirtAddr;
use cred::Capability;
use mm::user;
use sync::poll::Events;
use sync::{Error, Result};
use task::signal::{Info, Signal, send_to_group};
use task::{Pid, current, family};

use super::terminal::WindowSize;
use super::termios::{Input, Local, Output, SPECIALS, Termios};
use super::{Terminal, job, termio};

const TCGETS: u32 = 0x5401;
const TCSETS: u32 = 0x5402;
const TCSETSW: u32 = 0x5403;
const TCSETSF: u32 = 0x5404;
const TCGETA: u32 = 0x5405;
const TCSETA: u32 = 0x5406;
const TCSETAW: u32 = 0x5407;
const TCSETAF: u32 = 0x5408;
const TCSBRK: u32 = 0x5409;
const TCXONC: u32 = 0x540a;
const TCFLSH: u32 = 0x540b;
const TIOCEXCL: u32 = 0x540c;
const TIOCNXCL: u32 = 0x540d;
const TIOCSCTTY: u32 = 0x540e;
const TIOCGPGRP: u32 = 0x540f;
const TIOCSPGRP: u32 = 0x5410;
const TIOCOUTQ: u32 = 0x5411;
const TIOCSTI: u32 = 0x5412;
const TIOCGWINSZ: u32 = 0x5413;
const TIOCSWINSZ: u32 = 0x5414;
pub(super) const FIONREAD: u32 = 0x541b;
const TIOCNOTTY: u32 = 0x5422;
const TIOCGETD: u32 = 0x5424;
const TCSBRKP: u32 = 0x5425;
const TIOCGSID: u32 = 0x5429;
const TIOCGEXCL: u32 = 0x8004_5440;
const TIOCSIG: u32 = 0x4004_5436;
const TCGETS2: u32 = 0x802c_542a;
const TCSETS2: u32 = 0x402c_542b;
const TCSETSW2: u32 = 0x402c_542c;
const TCSETSF2: u32 = 0x402c_542d;

/// Bytes of the kernel's `struct termios`, and of `struct termios2`, which adds the two
/// speeds.
const TERMIOS_BYTES: usize = 36;
const TERMIOS2_BYTES: usize = 44;
/// 38400 baud, what the serial port is set to.
const SPEED: u32 = 38_400;

/// Which queues tcflush(3) empties.
const FLUSH_INPUT: u64 = 0;
const FLUSH_OUTPUT: u64 = 1;
const FLUSH_BOTH: u64 = 2;

/// A request on a terminal itself.
pub(super) fn terminal(terminal: &Arc<Terminal>, request: u32, argument: u64) -> Result<usize> {
    let at = VirtAddr(argument);
    match request {
        TIOCSCTTY => terminal.take_control()?,
        TIOCSTI => fake_input(terminal, at)?,
        TIOCNOTTY => give_up_control(terminal)?,
        TIOCGPGRP => user::write(at, controlled(terminal)?.1)?,
        TIOCSPGRP => terminal.set_foreground(read_group(at)?)?,
        TIOCGSID => user::write(at, controlled(terminal)?.0)?,
        TCSETS | TCSETSW | TCSETSF | TCSETS2 | TCSETSW2 | TCSETSF2 | TCSETA | TCSETAW | TCSETAF
        | TCFLSH | TCXONC | TCSBRK | TCSBRKP => {
            terminal.check_change()?;
            return settings(terminal, request, argument);
        }
        _ => return settings(terminal, request, argument),
    }
    Ok(0)
}

/// A request on a master. It may ask who is in the foreground without being of the session.
pub(super) fn master(terminal: &Arc<Terminal>, request: u32, argument: u64) -> Result<usize> {
    let at = VirtAddr(argument);
    match request {
        TIOCGPGRP => {
            let foreground = terminal.state.lock().foreground;
            user::write(at, foreground.unwrap_or(0))?;
        }
        TIOCSPGRP => terminal.set_foreground(read_group(at)?)?,
        TIOCGSID => {
            let session = terminal.state.lock().session;
            user::write(at, session.ok_or(Error::NotTerminal)?)?;
        }
        TCFLSH => return flush_by_master(terminal, argument),
        TIOCSIG => signal_foreground(terminal, argument)?,
        _ => return settings(terminal, request, argument),
    }
    Ok(0)
}

/// A request on a terminal's settings and queues, which a master may make too.
fn settings(terminal: &Arc<Terminal>, request: u32, argument: u64) -> Result<usize> {
    let at = VirtAddr(argument);
    match request {
        TCGETS => user::copy_out(&encode(&terminal.termios())[..TERMIOS_BYTES], at)?,
        TCGETS2 => user::copy_out(&encode(&terminal.termios()), at)?,
        TCSETS | TCSETSW | TCSETS2 | TCSETSW2 => terminal.set_termios(decode(at)?),
        TCSETSF | TCSETSF2 => {
            let termios = decode(at)?;
            terminal.flush_input();
            terminal.set_termios(termios);
        }
        TCGETA => user::copy_out(&termio::encode(&terminal.termios()), at)?,
        TCSETA | TCSETAW => terminal.set_termios(termio::decode(at, &terminal.termios())?),
        TCSETAF => {
            let termios = termio::decode(at, &terminal.termios())?;
            terminal.flush_input();
            terminal.set_termios(termios);
        }
        TIOCGWINSZ => write_window(terminal, at)?,
        TIOCSWINSZ => terminal.set_window(read_window(at)?),
        FIONREAD => user::write(at, terminal.state.lock().discipline.readable() as u32)?,
        TIOCOUTQ => user::write(
            at,
            terminal.driver.master().map_or(0, |queue| queue.len()) as u32,
        )?,
        TCFLSH => flush(terminal, argument)?,
        TCXONC => control_flow(terminal, argument)?,
        TIOCGETD => user::write(at, 0_u32)?,
        TIOCEXCL | TIOCNXCL => terminal.state.lock().is_exclusive = request == TIOCEXCL,
        TIOCGEXCL => user::write(at, u32::from(terminal.state.lock().is_exclusive))?,
        TCSBRK | TCSBRKP => {}
        _ => return Err(Error::NotTerminal),
    }
    Ok(0)
}

/// The session and the foreground group, for programs of that session.
fn controlled(terminal: &Terminal) -> Result<(Pid, Pid)> {
    if !terminal.is_controlling() {
        return Err(Error::NotTerminal);
    }
    let state = terminal.state.lock();
    let session = state.session.ok_or(Error::NotTerminal)?;
    Ok((session, state.foreground.unwrap_or(0)))
}

/// Faking input lets a program run commands as its parent (CVE-2017-5226), so it takes the right
/// to all, as on a Linux where dev.tty.legacy_tiocsti is off.
fn fake_input(terminal: &Terminal, at: VirtAddr) -> Result<()> {
    let may_all = current().credentials.get().has(Capability::SysAdmin);
    match (may_all, terminal.is_controlling()) {
        (true, _) => terminal.input(&[user::read(at)?]),
        (false, true) => return Err(Error::Io),
        (false, false) => return Err(Error::NotPermitted),
    }
    Ok(())
}

/// What the keys do that the terminal may not have.
fn signal_foreground(terminal: &Terminal, number: u64) -> Result<()> {
    let keys = [Signal::INT, Signal::QUIT, Signal::TSTP];
    let is_meant = |signal: &Signal| u64::from(signal.number()) == number;
    let signal = keys.into_iter().find(is_meant).ok_or(Error::Invalid)?;
    let foreground = terminal.state.lock().foreground;
    if let Some(group) = foreground {
        send_to_group(group, Info::kernel(signal));
    }
    Ok(())
}

fn give_up_control(terminal: &Terminal) -> Result<()> {
    if !terminal.is_controlling() {
        return Err(Error::NotTerminal);
    }
    let me = current().process.id();
    if family::session_of(me) == Some(me) {
        job::leave_session(me);
    }
    Ok(())
}

fn read_group(at: VirtAddr) -> Result<Pid> {
    let group: i32 = user::read(at)?;
    Pid::try_from(group).map_err(|_| Error::Invalid)
}

fn encode(termios: &Termios) -> [u8; TERMIOS2_BYTES] {
    let mut bytes = [0; TERMIOS2_BYTES];
    let words = [
        termios.input.bits(),
        termios.output.bits(),
        termios.control,
        termios.local.bits(),
    ];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    bytes[16] = termios.line;
    bytes[17..17 + SPECIALS].copy_from_slice(&termios.special);
    bytes[36..40].copy_from_slice(&SPEED.to_ne_bytes());
    bytes[40..44].copy_from_slice(&SPEED.to_ne_bytes());
    bytes
}

fn decode(at: VirtAddr) -> Result<Termios> {
    let words: [u32; 4] = user::read(at)?;
    let [line, special @ ..]: [u8; SPECIALS + 1] = user::read(at + 16)?;
    Ok(Termios {
        input: Input::from_bits_retain(words[0]),
        output: Output::from_bits_retain(words[1]),
        control: words[2],
        local: Local::from_bits_retain(words[3]),
        line,
        special,
    })
}

fn write_window(terminal: &Terminal, at: VirtAddr) -> Result<()> {
    let window = terminal.state.lock().window;
    user::write(
        at,
        [
            window.rows,
            window.columns,
            window.width_pixels,
            window.height_pixels,
        ],
    )
}

fn read_window(at: VirtAddr) -> Result<WindowSize> {
    let [rows, columns, width_pixels, height_pixels] = user::read::<[u16; 4]>(at)?;
    Ok(WindowSize {
        rows,
        columns,
        width_pixels,
        height_pixels,
    })
}

fn flush(terminal: &Terminal, which: u64) -> Result<()> {
    if !matches!(which, FLUSH_INPUT | FLUSH_OUTPUT | FLUSH_BOTH) {
        return Err(Error::Invalid);
    }
    if which != FLUSH_OUTPUT {
        terminal.flush_input();
    }
    if which != FLUSH_INPUT {
        terminal.flush_output();
    }
    Ok(())
}

/// The same for a master: its input is the terminal's output.
fn flush_by_master(terminal: &Terminal, which: u64) -> Result<usize> {
    let which = match which {
        FLUSH_INPUT => FLUSH_OUTPUT,
        FLUSH_OUTPUT => FLUSH_INPUT,
        other => other,
    };
    flush(terminal, which)?;
    Ok(0)
}

/// tcflow(3): 0 halts output, 1 resumes it; 2 and 3 speak to the other side.
fn control_flow(terminal: &Terminal, action: u64) -> Result<()> {
    match action {
        0 | 1 => {
            let halts = action == 0;
            let halted = {
                let mut state = terminal.state.lock();
                core::mem::replace(&mut state.discipline.is_output_halted, halts)
            };
            terminal.note_flow(halted, halts);
            terminal.pollee.notify(Events::WRITABLE);
            Ok(())
        }
        2 | 3 => Ok(()),
        _ => Err(Error::Invalid),
    }
}
