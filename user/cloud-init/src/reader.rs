//! Reads the texts of a seed into [`Settings`].

use std::mem;

use crate::seed::Seed;
use crate::settings::Settings;
use crate::{meta_data, network_config, user_data};

/// What a seed says. What cannot be read is a note.
pub fn settings_of(seed: &Seed) -> Settings {
    let mut settings = Settings::default();
    let read = meta_data::read(&seed.meta_data, &mut settings);
    note(&mut settings, "meta-data", read);
    let read = user_data::read(&seed.user_data, &mut settings);
    note(&mut settings, "user-data", read);
    let read = network_config::read(&seed.network_config);
    let read = read.map(|mut network| {
        let notes = network
            .as_mut()
            .map(|network| mem::take(&mut network.notes));
        settings.notes.extend(notes.unwrap_or_default());
        settings.network = network;
    });
    note(&mut settings, "network-config", read);
    settings
}

fn note(settings: &mut Settings, of: &str, read: Result<(), String>) {
    let why = read.err().map(|why| format!("{of}: {why}"));
    settings.notes.extend(why);
}
