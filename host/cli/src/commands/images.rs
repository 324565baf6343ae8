//! `sietch images`, `sietch pull`, `sietch rmi`: what the store of images holds.

use images::Reference;

use crate::failure::Failure;
use crate::flags::{PullFlags, RmiFlags, told};
use crate::oci;

/// Lists the images.
pub fn images() -> Result<u8, Failure> {
    let store = oci::of_user()?;
    println!(
        "{:<40} {:<12} {:>10} {:>10}",
        "NAME", "ID", "LAYERS", "DISK"
    );
    for image in store.list()? {
        let (layers, disk) = store.bytes_of(&image.id);
        let disk = if disk == 0 { "-".into() } else { told(disk) };
        println!(
            "{:<40} {:<12} {:>10} {disk:>10}",
            image.name.as_str(),
            image.id.short(),
            told(layers)
        );
    }
    Ok(0)
}

/// Brings images into the store.
pub fn pull(flags: &PullFlags) -> Result<u8, Failure> {
    for text in &flags.references {
        let reference: Reference = text.parse()?;
        let (name, image) = oci::fetch(&oci::of_user()?, &reference)?;
        println!("{name} {}", image.id);
    }
    Ok(0)
}

/// Removes images.
pub fn rmi(flags: &RmiFlags) -> Result<u8, Failure> {
    let store = oci::of_user()?;
    for text in &flags.names {
        println!("{}", store.remove(text)?);
    }
    Ok(0)
}
