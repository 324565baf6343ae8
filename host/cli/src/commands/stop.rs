//! `sietch stop`: asks programs to end, and ends machines that do not.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use agent::Message;
use qemu::TERMINATE;

use crate::agent::client::Client;
use crate::events;
use crate::failure::Failure;
use crate::flags::StopFlags;
use crate::session::deadline_after;
use crate::state::{Folder, Settings, kill};

const POLL: Duration = Duration::from_millis(20);

/// Runs the command.
pub fn stop(flags: &StopFlags) -> Result<u8, Failure> {
    for name in &flags.names {
        stop_one(name, flags.seconds)?;
        events::note(name, "stop", None);
        println!("{name}");
    }
    Ok(0)
}

/// Asks one to end; after so many seconds it is ended.
pub(super) fn stop_one(name: &str, seconds: Option<u64>) -> Result<(), Failure> {
    let folder = Folder::of(name);
    folder.wait_for_start();
    let settings = folder.settings().filter(Settings::is_served);
    let settings = settings.ok_or_else(|| Failure::NoSuchMachine { name: name.into() })?;
    let wish = match folder.note_wish_to_stop() {
        // It has ended, and with `--rm` nothing is left.
        Err(_) if !folder.path().exists() => return Ok(()),
        noted => noted?,
    };
    let is_heard = ask(&folder, &settings);
    wish.settle()?;
    let patience = match is_heard {
        true => settings.stop_patience(seconds),
        // Nobody hears; one that is about to be started again has seen the wish.
        false if settings.is_restarting => Duration::from_secs(1),
        false => Duration::ZERO,
    };
    let deadline = deadline_after(patience);
    while let Some(now) = folder.served_as(&settings) {
        if Instant::now() >= deadline {
            // It may have been started again just before the wish was there.
            kill(&now);
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// Asks the program to end, by the signal that it wants; whether it heard.
pub(crate) fn ask(folder: &Folder, settings: &Settings) -> bool {
    let by_agent = settings.stop_signal.is_some_and(|signal| {
        let client = Client::connect(&settings.name);
        client.is_ok_and(|(client, _)| client.say(0, Message::Signal(signal)).is_ok())
    });
    by_agent || {
        let socket = UnixStream::connect(folder.path().join("control.sock"));
        socket
            .and_then(|mut socket| socket.write_all(&[TERMINATE]))
            .is_ok()
    }
}
