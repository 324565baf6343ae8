//! The OCI image layout: `index.json`, and blobs by their digests below `blobs`.

use std::io::Read;
use std::path::Path;

use super::archive::Archive;
use super::files::{Files, Folder};
use super::{Source, parse, read_document};
use crate::document::{Descriptor, Index, Manifest};
use crate::error::{Error, Result};
use crate::reference::Name;

const MARK: &str = "oci-layout";
const INDEX: &str = "index.json";
/// Images of one archive that are looked at.
const IMAGES_MAX: usize = 1000;

/// One image of a layout.
pub(super) struct Layout<F> {
    files: F,
    tag: Option<String>,
}

/// A layout in a folder.
pub(super) fn of_folder(folder: &Path, tag: Option<&str>) -> Result<Layout<Folder>> {
    let files = Folder(folder.into());
    match folder.is_dir() {
        true => Layout::new(files, tag),
        false => Err(Error::NoSuchImage {
            name: folder.display().to_string(),
            way_out: "there is no such folder, so correct the path".into(),
        }),
    }
}

/// A layout in an archive.
pub(super) fn of_archive(file: &Path, tag: Option<&str>) -> Result<Layout<Archive>> {
    Layout::new(Archive::open(file)?, tag)
}

impl<F: Files> Layout<F> {
    /// Fails unless `files` are a layout.
    pub(super) fn new(mut files: F, tag: Option<&str>) -> Result<Self> {
        if files.read(MARK)?.is_none() {
            return Err(Error::NotAnImage {
                origin: files.path().display().to_string(),
                reason: format!("it has no file {MARK}, as each OCI image layout does"),
            });
        }
        Ok(Self {
            files,
            tag: tag.map(Into::into),
        })
    }

    fn index(&mut self) -> Result<Index> {
        let origin = self.origin();
        let text = self.files.read(INDEX)?.ok_or_else(|| Error::NotAnImage {
            origin: origin.clone(),
            reason: format!("it has no {INDEX}"),
        })?;
        parse(&origin, INDEX, &text)
    }

    /// The image whose configuration is in the file `config`: `blobs/sha256/` and its digest.
    pub(super) fn with_configuration(&mut self, config: &str) -> Result<Descriptor> {
        let mut waiting = self.index()?.manifests;
        let mut looked_at = 0;
        while let Some(image) = waiting.pop() {
            looked_at += 1;
            if looked_at > IMAGES_MAX {
                break;
            }
            let text = read_document(self, &image)?;
            if image.is_index() {
                let index: Index = parse(&self.origin(), "index", &text)?;
                waiting.extend(index.manifests);
                continue;
            }
            let manifest: Manifest = parse(&self.origin(), "manifest", &text)?;
            if config.ends_with(manifest.config.digest.hex()) {
                return Ok(image);
            }
        }
        Err(Error::NotAnImage {
            origin: self.origin(),
            reason: format!("no image has the configuration {config}"),
        })
    }

    /// The image that is meant: by its tag, or the only one.
    fn choose(&self, index: Index) -> Result<Descriptor> {
        let names = || index.manifests.iter().filter_map(Descriptor::name);
        let tags = || match names().collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "none has a tag".to_string(),
            tags => tags,
        };
        let meant = |image: &&Descriptor| image.name() == self.tag.as_deref();
        let found = match (&self.tag, index.manifests.as_slice()) {
            (None, [only]) => Some(only),
            (None, [_, ..]) => {
                return Err(Error::SeveralImages {
                    origin: self.origin(),
                    tags: tags(),
                });
            }
            _ => index.manifests.iter().find(meant),
        };
        found.cloned().ok_or_else(|| Error::NoSuchImage {
            name: self.tag.clone().unwrap_or_default(),
            way_out: format!("{} holds {}", self.origin(), tags()),
        })
    }
}

impl<F: Files> Source for Layout<F> {
    fn origin(&self) -> String {
        self.files.path().display().to_string()
    }

    fn name(&self) -> Option<Name> {
        let base = self
            .files
            .path()
            .file_stem()?
            .to_str()?
            .to_ascii_lowercase();
        match &self.tag {
            // Some tools write a whole name as the tag.
            Some(tag) if tag.contains(['/', ':']) => tag.parse().ok(),
            tag => Name::of(&base, tag.as_deref()),
        }
    }

    fn top(&mut self) -> Result<Descriptor> {
        let index = self.index()?;
        self.choose(index)
    }

    fn open(&mut self, blob: &Descriptor) -> Result<Box<dyn Read + '_>> {
        let missing = Error::BlobMissing {
            origin: self.origin(),
            digest: blob.digest.to_string(),
        };
        let name = format!("blobs/sha256/{}", blob.digest.hex());
        self.files.open(&name)?.ok_or(missing)
    }
}
