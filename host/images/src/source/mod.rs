//! Where images come from: each source names one image, and gives its blobs by their digests.
//!
//! Nothing that a source says is believed: whoever reads a blob compares its bytes with the digest
//! ([`read_document`], `Store::add`), so a source needs no checks of its own.

mod archive;
mod docker;
mod files;
mod layout;
mod made;
mod registry;

use std::io::Read;

use crate::digest::{Digest, Summed};
use crate::document::Descriptor;
use crate::error::{Error, Result};
use crate::reference::{Name, Reference};
pub(crate) use made::Made;

/// Bytes that a document has at most: registries take no larger ones.
const DOCUMENT_BYTES_MAX: u64 = 4 << 20;

/// One image somewhere.
pub(crate) trait Source {
    /// How messages call it.
    fn origin(&self) -> String;

    /// The name under which the store lists it.
    fn name(&self) -> Option<Name>;

    /// The image's manifest, or its index if it is for several platforms.
    fn top(&mut self) -> Result<Descriptor>;

    /// The bytes of a blob.
    ///
    /// Errors: `BlobMissing`.
    fn open(&mut self, blob: &Descriptor) -> Result<Box<dyn Read + '_>>;
}

/// The source that a reference leads to; `None` for a name of the store.
pub(crate) fn open(reference: &Reference) -> Result<Option<Box<dyn Source>>> {
    Ok(Some(match reference {
        Reference::Layout { folder, tag } => Box::new(layout::of_folder(folder, tag.as_deref())?),
        Reference::LayoutArchive { file, tag } => {
            Box::new(layout::of_archive(file, tag.as_deref())?)
        }
        Reference::DockerArchive { file, name } => docker::open(file, name.as_deref())?,
        Reference::Registry(remote) => Box::new(registry::open(remote)),
        Reference::Stored(_) => return Ok(None),
    }))
}

/// A whole document, which is what its digest says.
pub(crate) fn read_document(source: &mut dyn Source, blob: &Descriptor) -> Result<Vec<u8>> {
    let origin = source.origin();
    if blob.size > DOCUMENT_BYTES_MAX {
        return Err(Error::NotAnImage {
            reason: format!("its document {} has {} bytes", blob.digest, blob.size),
            origin,
        });
    }
    let mut summed = Summed::new(source.open(blob)?.take(blob.size + 1));
    let mut bytes = Vec::new();
    summed
        .read_to_end(&mut bytes)
        .map_err(Error::file(&origin))?;
    check(&origin, blob, summed.finish())?;
    Ok(bytes)
}

/// Whether what was read is the blob.
pub(crate) fn check(origin: &str, blob: &Descriptor, (digest, bytes): (Digest, u64)) -> Result<()> {
    let found = match bytes == blob.size {
        true if digest == blob.digest => return Ok(()),
        true => format!("it is {digest}"),
        false if bytes > blob.size => format!("it has more than {} bytes", blob.size),
        false => format!("it has {bytes} of {} bytes", blob.size),
    };
    Err(Error::BlobDamaged {
        origin: origin.into(),
        digest: blob.digest.to_string(),
        found,
    })
}

/// Reads JSON.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(
    origin: &str,
    what: &str,
    text: &[u8],
) -> Result<T> {
    serde_json::from_slice(text).map_err(|error| Error::NotAnImage {
        origin: origin.into(),
        reason: format!("its {what} cannot be read ({error})"),
    })
}
