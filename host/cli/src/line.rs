//! The line with which a machine is started again, by `sietch restart` or by its policy: the words of its `sietch run`, and what
//! other commands have changed of them since.
//!
//! It stands in the machine's settings ([`Settings::arguments`]), and nowhere else: so a change lasts as long as the machine's
//! folder, over all its starts. Its last words are the program's and its arguments, and whatever they look like, they are no
//! flags of ours.

use crate::failure::Failure;
use crate::state::{Folder, Settings};

/// Changes the line of the machine `name`.
///
/// Errors: `NoSuchMachine`; what `to` says.
pub fn change(
    name: &str,
    to: impl FnOnce(&Settings) -> Result<Vec<String>, Failure>,
) -> Result<(), Failure> {
    let folder = Folder::of(name);
    let no_such = || Failure::NoSuchMachine { name: name.into() };
    folder.settings().ok_or_else(no_such)?;
    // Its session may note its end right now.
    let _lock = folder.lock()?;
    let settings = folder.settings().ok_or_else(no_such)?;
    let arguments = to(&settings)?;
    folder.write_settings(&Settings {
        arguments,
        ..settings
    })
}

/// So many of its first words are ours, and not the program's.
pub fn own_words(settings: &Settings) -> usize {
    let words = settings.arguments.len();
    words.saturating_sub(settings.words_of_program())
}

/// The line without those of `flags`, each of which has a value, whose value `is_dropped`.
pub fn without(
    settings: &Settings,
    flags: &[&str],
    is_dropped: impl Fn(&str) -> bool,
) -> Vec<String> {
    let (line, own) = (&settings.arguments, own_words(settings));
    let mut kept: Vec<String> = Vec::new();
    let mut at = 0;
    while let Some(word) = line.get(at) {
        let (value, taken) = match word.split_once('=') {
            _ if at >= own || !is_one_of(flags, word) => (None, 1),
            Some((_, value)) => (Some(value), 1),
            None => (line.get(at + 1).map(String::as_str), 2),
        };
        if !value.is_some_and(&is_dropped) {
            kept.extend(line.iter().skip(at).take(taken).cloned());
        }
        at += taken;
    }
    kept
}

/// The line with that value of a flag in the place of any other, or with none.
pub fn with(settings: &Settings, flag: &str, value: Option<&str>) -> Vec<String> {
    let mut line = without(settings, &[flag], |_| true);
    if let Some(value) = value {
        // Behind the word `run`.
        line.insert(line.len().min(1), format!("{flag}={value}"));
    }
    line
}

/// Whether a word is one of those flags, with its value or before it.
pub fn is_one_of(flags: &[&str], word: &str) -> bool {
    let flag = word.split('=').next().unwrap_or(word);
    flags.contains(&flag)
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// The settings of a machine with that line, whose program is `command`.
    pub(crate) fn machine(line: &str, command: &str) -> Settings {
        let words = |text: &str| text.split(' ').map(ToString::to_string).collect::<Vec<_>>();
        serde_json::from_value(json!({
            "name": "m", "command": words(command), "qemu_pid": 0, "session_pid": 0, "ports": [],
            "kernel": "/k", "memory_mib": 1, "started_s": 0, "arguments": words(line),
        }))
        .expect("settings")
    }

    #[test]
    fn a_flag_is_given_another_value_and_the_programs_words_stay() {
        let line = |before: &str, value: Option<&str>| {
            let settings = machine(before, "x --restart no");
            with(&settings, "--restart", value).join(" ")
        };
        for before in [
            "run -d x --restart no",
            "run --restart no -d x --restart no",
            "run -d --restart=on-failure:3 x --restart no",
        ] {
            let always = line(before, Some("always"));
            assert_eq!(always, "run --restart=always -d x --restart no");
            assert_eq!(line(before, None), "run -d x --restart no");
        }
    }

    #[test]
    fn a_flag_of_a_machine_of_a_snapshot_is_given_another_value() {
        // Its line names no program; its settings, that of the snapshot.
        let settings = machine("run -d --from warm --restart always", "redis-server --save");
        let line = with(&settings, "--restart", Some("on-failure"));
        assert_eq!(line.join(" "), "run --restart=on-failure -d --from warm");
    }
}
