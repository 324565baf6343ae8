//! `docker save` and `podman save`: a tar archive with `manifest.json`, which lists images, each with the file of its
//! configuration and the files of its layers.
//!
//! The archive has no manifest as registries know it, so one is made: a layer that is not compressed is called by
//! the digest that the configuration has for it anyway. Docker writes an OCI layout into the same archive since
//! version 25, whose layers may be compressed; where there is one, it is used.

use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::path::Path;

use serde::Deserialize;

use super::archive::Archive;
use super::files::Files;
use super::layout::Layout;
use super::{Source, parse};
use crate::digest::Digest;
use crate::document::{
    CONFIG_TYPE, Configuration, Descriptor, LAYER_TYPE, MANIFEST_TYPES, Manifest,
};
use crate::error::{Error, Result};
use crate::reference::Name;

const LIST: &str = "manifest.json";

/// One image in `manifest.json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

impl Listed {
    fn tags(&self) -> &[String] {
        self.repo_tags.as_deref().unwrap_or_default()
    }

    /// Tools put a host in front of names that have none.
    fn is_called(&self, name: &str) -> bool {
        let Ok(wanted) = name.parse::<Name>() else {
            return false;
        };
        let mut tags = self
            .tags()
            .iter()
            .filter_map(|tag| tag.parse::<Name>().ok());
        tags.any(|tag| tag.ends_with(&wanted))
    }
}

/// An image of such an archive.
struct Docker {
    archive: Archive,
    name: Option<Name>,
    top: Descriptor,
    documents: HashMap<Digest, Vec<u8>>,
    layers: HashMap<Digest, String>,
}

/// Opens the archive.
pub(super) fn open(file: &Path, name: Option<&str>) -> Result<Box<dyn Source>> {
    let mut archive = Archive::open(file)?;
    let origin = file.display().to_string();
    let Some(text) = archive.read(LIST)? else {
        return Err(Error::NotAnImage {
            origin,
            reason: format!("it has no file {LIST}, as what `docker save` writes does"),
        });
    };
    let images: Vec<Listed> = parse(&origin, LIST, &text)?;
    let image = choose(&origin, images, name)?;
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    let called = match image.tags().first() {
        Some(tag) => tag.parse().ok(),
        None => stem.and_then(|stem| Name::of(&stem.to_ascii_lowercase(), None)),
    };
    if archive.has("oci-layout") && image.layers.iter().all(|layer| layer.starts_with("blobs/")) {
        let blobs = Blobs {
            name: called,
            config: image.config,
            layout: Layout::new(archive, None)?,
        };
        return Ok(Box::new(blobs));
    }
    Ok(Box::new(Docker::new(origin, archive, &image, called)?))
}

fn choose(origin: &str, images: Vec<Listed>, name: Option<&str>) -> Result<Listed> {
    let tags: Vec<&str> = images
        .iter()
        .flat_map(Listed::tags)
        .map(String::as_str)
        .collect();
    let tags = tags.join(", ");
    let several = images.len() > 1;
    let found = match name {
        Some(name) => images.into_iter().find(|image| image.is_called(name)),
        None if several => {
            return Err(Error::SeveralImages {
                origin: origin.into(),
                tags,
            });
        }
        None => images.into_iter().next(),
    };
    found.ok_or_else(|| Error::NoSuchImage {
        name: name.unwrap_or_default().into(),
        way_out: format!("{origin} holds {tags}"),
    })
}

impl Docker {
    fn new(
        origin: String,
        mut archive: Archive,
        image: &Listed,
        name: Option<Name>,
    ) -> Result<Self> {
        let lacks = |what: &str| Error::NotAnImage {
            origin: origin.clone(),
            reason: format!("it lacks {what}, which its {LIST} names"),
        };
        let text = archive
            .read(&image.config)?
            .ok_or_else(|| lacks(&image.config))?;
        let configuration: Configuration = parse(&origin, "configuration", &text)?;
        let digests = &configuration.rootfs.diff_ids;
        let sizes = image.layers.iter().map(|layer| {
            let bytes = archive.bytes_of(layer);
            bytes.ok_or_else(|| lacks(layer))
        });
        let sizes: Vec<u64> = sizes.collect::<Result<_>>()?;
        let layers = digests.iter().zip(sizes);
        let layers = layers.map(|(digest, size)| descriptor(LAYER_TYPE, digest.clone(), size));
        let manifest = Manifest {
            schema_version: 2,
            media_type: MANIFEST_TYPES[0].into(),
            config: descriptor(CONFIG_TYPE, Digest::of(&text), text.len() as u64),
            layers: layers.collect(),
        };
        let made = serde_json::to_vec(&manifest).unwrap_or_default();
        let top = descriptor(MANIFEST_TYPES[0], Digest::of(&made), made.len() as u64);
        let files = digests.iter().cloned().zip(image.layers.iter().cloned());
        Ok(Self {
            layers: files.collect(),
            documents: [(top.digest.clone(), made), (manifest.config.digest, text)].into(),
            archive,
            name,
            top,
        })
    }
}

fn descriptor(media_type: &str, digest: Digest, size: u64) -> Descriptor {
    Descriptor {
        media_type: media_type.into(),
        digest,
        size,
        platform: None,
        annotations: Default::default(),
    }
}

impl Source for Docker {
    fn origin(&self) -> String {
        self.archive.path().display().to_string()
    }

    fn name(&self) -> Option<Name> {
        self.name.clone()
    }

    fn top(&mut self) -> Result<Descriptor> {
        Ok(self.top.clone())
    }

    fn open(&mut self, blob: &Descriptor) -> Result<Box<dyn Read + '_>> {
        if let Some(document) = self.documents.get(&blob.digest) {
            return Ok(Box::new(Cursor::new(document)));
        }
        let missing = Error::BlobMissing {
            origin: self.origin(),
            digest: blob.digest.to_string(),
        };
        let Some(file) = self.layers.get(&blob.digest) else {
            return Err(missing);
        };
        self.archive.open(file)?.ok_or(missing)
    }
}

/// An image of an archive that is a layout as well.
struct Blobs {
    name: Option<Name>,
    config: String,
    layout: Layout<Archive>,
}

impl Source for Blobs {
    fn origin(&self) -> String {
        self.layout.origin()
    }

    fn name(&self) -> Option<Name> {
        self.name.clone()
    }

    /// The image of that configuration.
    fn top(&mut self) -> Result<Descriptor> {
        self.layout.with_configuration(&self.config)
    }

    fn open(&mut self, blob: &Descriptor) -> Result<Box<dyn Read + '_>> {
        self.layout.open(blob)
    }
}
