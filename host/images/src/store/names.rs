//! The names of images: `index.json` of the layout.

use std::fs;
use std::io::ErrorKind;

use super::{DRAFT, Draft, Store, publish};
use crate::digest::Digest;
use crate::document::{Descriptor, Index, REF_NAME};
use crate::error::{Error, Result};
use crate::reference::Name;

const MARK: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;
/// As many digits of a digest are enough to name an image.
const DIGITS_MIN: usize = 4;

/// A name, and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: Name,
    /// The digest of the image's manifest.
    pub id: Digest,
}

impl Store {
    fn index(&self) -> Result<Index> {
        let path = self.folder.join("index.json");
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| Error::ListDamaged {
                path,
                reason: error.to_string(),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Index {
                schema_version: 2,
                manifests: Vec::new(),
            }),
            Err(error) => Err(Error::own(path)(error)),
        }
    }

    fn write_index(&self, index: &Index) -> Result<()> {
        let text = serde_json::to_vec(index).unwrap_or_default();
        self.write("oci-layout", MARK)?;
        self.write("index.json", &text)
    }

    fn write(&self, name: &str, text: &[u8]) -> Result<()> {
        let draft = Draft(self.folder.join(format!("{DRAFT}{name}")));
        fs::write(&draft.0, text).map_err(Error::file(&draft.0))?;
        publish(&draft.0, &self.folder.join(name))
    }

    /// All names, in order.
    pub fn list(&self) -> Result<Vec<Listed>> {
        let images = self.index()?.manifests.into_iter();
        let listed = images.filter_map(|image| {
            let name = image.name()?.parse().ok()?;
            Some(Listed {
                name,
                id: image.digest,
            })
        });
        let mut listed: Vec<_> = listed.collect();
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    /// The image of that name; the host and folders in front of it may be left out where only one image ends so.
    pub fn find(&self, name: &Name) -> Result<Option<Listed>> {
        let images = self.list()?;
        let exact = images.iter().find(|image| image.name == *name);
        let ends_so = images.iter().filter(|image| image.name.ends_with(name));
        let ends_so: Vec<_> = ends_so.collect();
        Ok(match (exact, ends_so.as_slice()) {
            (Some(image), _) => Some(image.clone()),
            (None, [only]) => Some((*only).clone()),
            _ => None,
        })
    }

    /// By a name, or by the first digits of its digest.
    pub(super) fn named(&self, text: &str) -> Result<Listed> {
        let by_name = text.parse::<Name>().ok().map(|name| self.find(&name));
        if let Some(found) = by_name.transpose()?.flatten() {
            return Ok(found);
        }
        let has_digits =
            |image: &Listed| text.len() >= DIGITS_MIN && image.id.hex().starts_with(text);
        let found = self.list()?.into_iter().find(has_digits);
        found.ok_or_else(|| Error::NoSuchImage {
            name: text.into(),
            way_out: "`sietch images` lists those there are".into(),
        })
    }

    pub(super) fn set_name(&self, name: &Name, manifest: &Descriptor) -> Result<()> {
        let mut index = self.index()?;
        index
            .manifests
            .retain(|image| image.name() != Some(name.as_str()));
        let mut manifest = manifest.clone();
        manifest.annotations = [(REF_NAME.into(), name.to_string())].into();
        index.manifests.push(manifest);
        self.write_index(&index)
    }

    pub(super) fn forget_name(&self, name: &Name) -> Result<()> {
        let mut index = self.index()?;
        index
            .manifests
            .retain(|image| image.name() != Some(name.as_str()));
        self.write_index(&index)
    }
}
