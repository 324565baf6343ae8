//! `sietch kill`: sends machines' programs a signal, SIGKILL if none is named.

use agent::Message;

use crate::agent::client::Client;
use crate::failure::Failure;
use crate::flags::KillFlags;

/// Linux's signals by name (signal(7)), in the order of their numbers.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];
/// The highest number of a signal.
const SIGNAL_MAX: u8 = 64;

/// Runs the command.
pub fn kill(flags: &KillFlags) -> Result<u8, Failure> {
    let signal = number_of(&flags.signal).ok_or_else(|| Failure::NoSuchSignal {
        name: flags.signal.clone(),
    })?;
    for name in &flags.names {
        let (client, _) = Client::connect(name)?;
        client
            .say(0, Message::Signal(signal))
            .map_err(|_| Failure::NoAgent { name: name.clone() })?;
        println!("{name}");
    }
    Ok(0)
}

/// The number of a signal, by `9`, `KILL` or `SIGKILL`.
fn number_of(text: &str) -> Option<u8> {
    if let Ok(number) = text.parse() {
        return (1..=SIGNAL_MAX).contains(&number).then_some(number);
    }
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let at = NAMES.iter().position(|known| *known == name)?;
    u8::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        assert_eq!(number_of("KILL"), Some(9));
        assert_eq!(number_of("SIGTERM"), Some(15));
        assert_eq!(number_of("sigsys"), Some(31));
        assert_eq!(number_of("64"), Some(64));
        assert_eq!(number_of("0"), None);
        assert_eq!(number_of("65"), None);
        assert_eq!(number_of("SIGNOTHING"), None);
    }
}
