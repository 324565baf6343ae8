//! Applies settings by the interfaces that Linux has for each: sethostname(2), rtnetlink(7), and files.
//!
//! One thing that fails does not stop the next: each is a sentence on standard error.

mod files;
mod host_name;
mod keys;
mod network;
mod users;

use std::io;
use std::path::Path;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::metadata_service;
use crate::reader::settings_of;
use crate::seed;
use crate::settings::Settings;

/// Where cloud-init has it, for whoever looks.
const INSTANCE_ID: &str = "/var/lib/cloud/data/instance-id";
/// Of address space: a few bytes of YAML make gigabytes by aliases.
const MEMORY_BYTES_MAX: u64 = 128 << 20;

/// Finds what the cloud says, and applies it, in a process of its own.
pub fn all(wants_metadata: bool) {
    if let Err(why) = bound_memory() {
        eprintln!("sietch: what the cloud says is not read, for memory has no bound: {why}");
        return;
    }
    let seed = seed::find().or_else(|| {
        let asked = wants_metadata.then(|| metadata_service::ask(metadata_service::ADDRESS.into()));
        asked?
            .inspect_err(|why| eprintln!("sietch: the metadata service does not answer: {why}"))
            .ok()
    });
    if let Some(seed) = seed {
        apply(&settings_of(&seed), Path::new("/"));
    }
}

fn apply(settings: &Settings, root: &Path) {
    if let Some(name) = &settings.host_name {
        note("the host name", host_name::set(root, name));
    }
    if let Some(network) = &settings.network {
        network::apply(root, network);
    }
    for keys in &settings.keys {
        note("keys", keys::add(root, keys));
    }
    for file in &settings.files {
        note(&file.path, files::write(root, file));
    }
    if let Some(id) = &settings.instance_id {
        let text = format!("{id}\n");
        note(INSTANCE_ID, files::replace(root, INSTANCE_ID, &text));
    }
    for why in &settings.notes {
        eprintln!("sietch: {why}.");
    }
}

fn bound_memory() -> io::Result<()> {
    let most = Some(MEMORY_BYTES_MAX);
    let limit = Rlimit {
        current: most,
        maximum: most,
    };
    Ok(setrlimit(Resource::As, limit)?)
}

fn note(what: &str, done: io::Result<()>) {
    if let Err(why) = done {
        eprintln!("sietch: the cloud's wish for {what} was not done: {why}");
    }
}

#[cfg(test)]
mod tests;
