//! `sietch images`, `sietch pull`, `sietch rmi`: what the store of images holds.

use std::thread;
use std::time::{Duration, Instant};

use images::{Error, Listed, Name, Reference, Store};
use serde::Serialize;

use crate::failure::Failure;
use crate::flags::OutputFlags;
use crate::flags::{PullFlags, RmiFlags, told};
use crate::state::Settings;
use crate::{oci, state};

/// How long the process of a machine that has ended may take to go.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// The fields are those of `--output json`; the first four are docker's.
#[derive(Serialize)]
struct Row {
    repository: String,
    tag: String,
    id: String,
    size: String,
    name: String,
    digest: String,
    layers_bytes: u64,
    /// Of the disk that machines have as their root; 0 before the first.
    disk_bytes: u64,
}

/// Lists the images.
pub fn images(output: &OutputFlags) -> Result<u8, Failure> {
    let store = oci::of_user()?;
    let images = store.list()?;
    let row = |image: &Listed| {
        let (layers_bytes, disk_bytes) = store.bytes_of(&image.id);
        let name = image.name.as_str();
        // A colon before a slash is of a port.
        let split = name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'));
        let (repository, tag) = split.unwrap_or((name, ""));
        Row {
            repository: repository.into(),
            tag: tag.into(),
            id: image.id.short().to_string(),
            size: told(layers_bytes),
            name: name.into(),
            digest: image.id.to_string(),
            layers_bytes,
            disk_bytes,
        }
    };
    let rows: Vec<Row> = images.iter().map(row).collect();
    output.list(&rows, table)?;
    Ok(0)
}

fn table(rows: &[Row]) {
    println!(
        "{:<40} {:<12} {:>10} {:>10}",
        "NAME", "ID", "LAYERS", "DISK"
    );
    for row in rows {
        let disk = match row.disk_bytes {
            0 => "-".into(),
            bytes => told(bytes),
        };
        println!(
            "{:<40} {:<12} {:>10} {disk:>10}",
            row.name, row.id, row.size
        );
    }
}

/// What was brought. The fields are those of `--output json`.
#[derive(Serialize)]
struct Pulled {
    name: String,
    digest: String,
}

/// Brings images into the store.
pub fn pull(flags: &PullFlags) -> Result<u8, Failure> {
    let mut all = Vec::new();
    for text in &flags.references {
        let reference: Reference = text.parse()?;
        let (name, image) = oci::fetch(&oci::of_user()?, &reference)?;
        if flags.output.is_table() {
            println!("{name} {}", image.id);
        }
        all.push(Pulled {
            name: name.to_string(),
            digest: image.id.to_string(),
        });
    }
    flags.output.list(&all, |_| ())?;
    Ok(0)
}

/// Removes images.
pub fn rmi(flags: &RmiFlags) -> Result<u8, Failure> {
    let store = oci::of_user()?;
    for text in &flags.names {
        println!("{}", remove(&store, text)?);
    }
    Ok(0)
}

/// Removes one; that of a machine which has just ended is held by its process for a moment still.
fn remove(store: &Store, text: &str) -> Result<Name, Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match store.remove(text) {
            Err(Error::InUse { name }) if !is_used(store, &name) && Instant::now() < deadline => {
                thread::sleep(POLL);
            }
            removed => return Ok(removed?),
        }
    }
}

/// Whether a machine runs that has the image of this name, by whatever name it was started.
pub(super) fn is_used(store: &Store, name: &str) -> bool {
    let images = store.list().unwrap_or_default().into_iter();
    let mut named = images.filter(|image| image.name.as_str() == name);
    let id = named.next().map(|image| image.id.to_string());
    let mut machines = state::running().into_iter();
    machines.any(|machine| has_image(&machine, name, id.as_deref()))
}

fn has_image(machine: &Settings, name: &str, id: Option<&str>) -> bool {
    machine.image.as_deref() == Some(name) || id.is_some() && machine.image_id.as_deref() == id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::tests::machine;

    #[test]
    fn an_image_is_its_machines_by_each_of_its_names() {
        let of = |image: Option<&str>, id: Option<&str>| Settings {
            image: image.map(Into::into),
            image_id: id.map(Into::into),
            ..machine("run -d a", "a")
        };
        let own = of(Some("a:latest"), Some("sha256:1"));
        assert!(has_image(&own, "b:latest", Some("sha256:1")));
        // The name is another image's by now, and leads to none that is kept.
        assert!(has_image(&own, "a:latest", None));
        assert!(!has_image(&own, "b:latest", Some("sha256:2")));
        assert!(!has_image(&of(None, None), "b:latest", None));
    }
}
