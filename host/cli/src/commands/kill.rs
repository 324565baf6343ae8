//! `sietch kill`: sends machines' programs a signal, SIGKILL if none is named.

use agent::Message;

use crate::agent::client::Client;
use crate::events;
use crate::failure::Failure;
use crate::flags::KillFlags;
use crate::signals;
use crate::state::Folder;
use crate::wish::Wish;

/// Runs the command.
pub fn kill(flags: &KillFlags) -> Result<u8, Failure> {
    let signal = signals::number_of(&flags.signal).ok_or_else(|| Failure::NoSuchSignal {
        name: flags.signal.clone(),
    })?;
    for name in &flags.names {
        let (client, _) = Client::connect(name)?;
        let ends = signal == signals::KILL;
        let wish = ends.then(|| Folder::of(name).note_wish_to_stop());
        let wish = wish.transpose()?;
        client
            .say(0, Message::Signal(signal))
            .map_err(|_| Failure::NoAgent { name: name.clone() })?;
        wish.map_or(Ok(()), Wish::settle)?;
        events::note(name, "kill", None);
        println!("{name}");
    }
    Ok(0)
}
