//! From what a source names to one image for this kind of machine.

use crate::document::{Configuration, Descriptor, Index, Manifest, Platform};
use crate::error::{Error, Result};
use crate::reference::Reference;
use crate::source::{Source, parse, read_document};
use crate::store::Image;

/// Indexes within indexes; nobody makes more than two.
const DEPTH_MAX: usize = 4;

/// The manifest that is meant.
///
/// Errors: `WrongPlatform`.
pub(crate) fn manifest(source: &mut dyn Source, reference: &Reference) -> Result<Descriptor> {
    let mut found = source.top()?;
    for _ in 0..DEPTH_MAX {
        if !found.is_index() {
            return Ok(found);
        }
        let text = read_document(source, &found)?;
        let index: Index = parse(&source.origin(), "index", &text)?;
        found = ours(index, reference)?;
    }
    Err(Error::NotAnImage {
        origin: source.origin(),
        reason: "its indexes lead to indexes only".into(),
    })
}

fn ours(index: Index, reference: &Reference) -> Result<Descriptor> {
    let is_ours = |image: &&Descriptor| image.platform.as_ref().is_none_or(Platform::is_ours);
    if let Some(image) = index.manifests.iter().find(is_ours) {
        return Ok(image.clone());
    }
    let platforms = index
        .manifests
        .iter()
        .filter_map(|image| image.platform.as_ref());
    // What builders say of their work has no platform, and says so.
    let has: Vec<_> = platforms
        .map(Platform::told)
        .filter(|platform| !platform.contains("unknown"))
        .collect();
    Err(Error::WrongPlatform {
        name: reference.to_string(),
        has: has.join(", "),
    })
}

/// The image of a manifest.
///
/// Errors: `WrongPlatform`, and what reading says.
pub(crate) fn image(source: &mut dyn Source, descriptor: &Descriptor) -> Result<Image> {
    let origin = source.origin();
    let text = read_document(source, descriptor)?;
    let manifest: Manifest = parse(&origin, "manifest", &text)?;
    let text = read_document(source, &manifest.config)?;
    let configuration: Configuration = parse(&origin, "configuration", &text)?;
    let platform = Platform {
        architecture: configuration.architecture.clone(),
        os: configuration.os.clone(),
    };
    if !platform.is_ours() {
        return Err(Error::WrongPlatform {
            name: origin,
            has: platform.told(),
        });
    }
    let (layers, diff_ids) = (manifest.layers.len(), configuration.rootfs.diff_ids.len());
    match layers == diff_ids {
        true => Ok(Image {
            id: descriptor.digest.clone(),
            manifest,
            configuration,
        }),
        false => Err(Error::NotAnImage {
            origin,
            reason: format!("it has {layers} layers and its configuration names {diff_ids}"),
        }),
    }
}
