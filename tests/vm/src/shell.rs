//! An interactive busybox shell, typed to through a pseudo-terminal.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use qemu::Transcript;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Setup};

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "an interactive shell answers, pipes and keeps jobs",
        commands,
    ),
    (
        "Ctrl-C ends the program in front and not the shell",
        interrupt,
    ),
];

/// The tests of what the serial port cannot do.
pub const TESTS_OF_PORTS: &[Test] = &[
    (
        "the machine's terminal has the size of ours, and follows it",
        window,
    ),
    (
        "keys are taken while a crowd in front hears of a new size",
        crowd,
    ),
    (
        "at a terminal an output that goes elsewhere is no terminal",
        mixed,
    ),
];

const PATIENCE: Duration = Duration::from_secs(20);

fn commands(setup: &Setup) -> Result<(), String> {
    let mut terminal = Terminal::start(setup)?;
    terminal.ask("echo $((6 * 7)) is it", "42 is it")?;
    terminal.ask("seq 1 100 | tail -n 3 | tr '\\n' '+'", "98+99+100+")?;
    terminal.ask(
        "for i in 1 2 3; do echo $i; done > /tmp/x; echo lines=$(wc -l < /tmp/x)",
        "lines=3",
    )?;
    // An interactive shell ignores SIGTERM, and so does its child until it runs: who types
    // faster than that sees the signal lost, on Linux too. So the job speaks first.
    terminal.ask("(echo up $((1 + 1)); sleep 100) &", "up 2")?;
    terminal.ask("jobs", "Running")?;
    terminal.ask("kill %1; wait; echo job $((3 - 2)) gone", "job 1 gone")?;
    terminal.leave()
}

fn interrupt(setup: &Setup) -> Result<(), String> {
    let mut terminal = Terminal::start(setup)?;
    // What speaks is in front already, for it is what the shell waits for.
    terminal.ask("sh -c 'echo begun $((1 + 1)); exec sleep 1000'", "begun 2")?;
    terminal.write("\x03")?;
    terminal.ask("echo still $((1 + 1)) here", "still 2 here")?;
    terminal.leave()
}

fn window(setup: &Setup) -> Result<(), String> {
    let mut terminal = Terminal::start(setup)?;
    terminal.ask("stty size", "31 97")?;
    let waits = "trap 'stty size; exit' WINCH; echo waits $((1 + 1)); while :; do sleep 1; done";
    terminal.ask(
        &format!("sh -c \"{}\"", waits.replace('$', "\\$")),
        "waits 2",
    )?;
    terminal.resize(40, 120)?;
    if !terminal.screen.wait_for("40 120", PATIENCE) {
        return Err(format!("the size stays: {:?}", terminal.screen.text()));
    }
    terminal.leave()
}

/// A signal to many processes takes longer than the kernel keeps keys waiting elsewhere.
fn crowd(setup: &Setup) -> Result<(), String> {
    let mut terminal = Terminal::start(setup)?;
    let waits = "i=0; while [ $i -lt 300 ]; do sleep 1000 & i=$((i + 1)); done; echo crowd $((1 + 1)); \
        while read -r key && [ $key != end ]; do echo got $key $((1 + 1)); done; echo bye $((1 + 1))";
    terminal.ask(&format!("sh -c '{waits}'"), "crowd 2")?;
    for turn in 0..200 {
        terminal.resize(30 + turn % 2, 97)?;
        terminal.write(&format!("key{turn}\r"))?;
        // The reader is kept from falling behind, not the kernel.
        if turn % 20 == 19
            && !terminal
                .screen
                .wait_for(&format!("got key{turn} 2"), PATIENCE)
        {
            return Err(format!("key {turn} is lost: {:?}", terminal.screen.text()));
        }
    }
    terminal.ask("end", "bye 2")?;
    terminal.leave()
}

fn mixed(setup: &Setup) -> Result<(), String> {
    let (keyboard, user_side) = open_pty().map_err(|error| format!("no terminal: {error}"))?;
    let screen = Transcript::of(keyboard.try_clone().map_err(|error| error.to_string())?);
    let script = "test -t 0 && test -t 2 && ! test -t 1 && echo kept && echo shown >&2";
    let args = ["--net", "none", "busybox", "sh", "-c", script];
    let duplicate = || user_side.try_clone().map_err(|error| error.to_string());
    let output = setup
        .command(&args)
        .stdin(duplicate()?)
        .stderr(duplicate()?)
        .output()
        .map_err(|error| format!("sietch does not start: {error}"))?;
    let is_shown = screen.wait_for("shown", PATIENCE);
    match output.status.success() && output.stdout == b"kept\n" && is_shown {
        true => Ok(()),
        false => Err(format!("{output:?}, the screen: {:?}", screen.text())),
    }
}

/// The command's terminal, from the user's side.
struct Terminal {
    child: Child,
    keyboard: File,
    screen: Transcript,
}

impl Terminal {
    fn start(setup: &Setup) -> Result<Self, String> {
        let (keyboard, user_side) = open_pty().map_err(|error| format!("no terminal: {error}"))?;
        set_window(&keyboard, 31, 97).map_err(|error| format!("no window: {error}"))?;
        let duplicate = |file: &File| file.try_clone().map_err(|error| error.to_string());
        let screen = Transcript::of(duplicate(&keyboard)?);
        let child = setup
            .command(&["--net", "none", "busybox", "sh"])
            .stdin(Stdio::from(duplicate(&user_side)?))
            .stdout(Stdio::from(duplicate(&user_side)?))
            .stderr(Stdio::from(user_side))
            .spawn()
            .map_err(|error| format!("sietch does not start: {error}"))?;
        let terminal = Self {
            child,
            keyboard,
            screen,
        };
        match terminal.screen.wait_for("# ", BOOT_PATIENCE) {
            true => Ok(terminal),
            false => Err(format!(
                "the shell shows no prompt: {:?}",
                terminal.screen.text()
            )),
        }
    }

    fn resize(&self, rows: u16, columns: u16) -> Result<(), String> {
        set_window(&self.keyboard, rows, columns).map_err(|error| error.to_string())?;
        // The terminal controls no session of the command's, so nobody else tells it.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or("the command has no number")?;
        kill_process(pid, Signal::WINCH).map_err(|error| error.to_string())
    }

    fn write(&mut self, keys: &str) -> Result<(), String> {
        self.keyboard
            .write_all(keys.as_bytes())
            .map_err(|error| error.to_string())
    }

    /// Types a line and waits for the answer, which the line itself must not contain.
    fn ask(&mut self, line: &str, answer: &str) -> Result<(), String> {
        self.write(&format!("{line}\r"))?;
        match self.screen.wait_for(answer, PATIENCE) {
            true => Ok(()),
            false => Err(format!(
                "`{line}` is not answered: {:?}",
                self.screen.text()
            )),
        }
    }

    fn leave(mut self) -> Result<(), String> {
        self.write("exit 5\r")?;
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                return match status.code() {
                    Some(5) => Ok(()),
                    other => Err(format!("the shell's status is {other:?}")),
                };
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err("the shell did not leave".into())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Three Ctrl-C within a second end the machine.
        let _ = self.write("\x03\x03\x03");
        let _ = self.child.wait();
    }
}

fn set_window(terminal: &File, rows: u16, columns: u16) -> rustix::io::Result<()> {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size)
}

fn open_pty() -> rustix::io::Result<(File, File)> {
    let master: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let path = ptsname(&master, Vec::new())?;
    let path = path.to_string_lossy().into_owned();
    let user_side = File::options().read(true).write(true).open(path);
    Ok((
        File::from(master),
        user_side.map_err(|_| rustix::io::Errno::NODEV)?,
    ))
}
