//! Blobs: copied in with their digests compared, shared by images, removed when no image has them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;

use super::{DRAFT, Draft, Image, Store, publish};
use crate::digest::{Digest, Summed};
use crate::document::{Configuration, Descriptor, Manifest};
use crate::error::{Error, Result};
use crate::source::{self, Source};
use crate::{Progress, Stage, platform};

const ORIGIN: &str = "the store";
const CHUNK_BYTES: usize = 256 << 10;

impl Store {
    pub(super) fn blobs(&self) -> PathBuf {
        self.folder.join("blobs/sha256")
    }

    fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.blobs().join(digest.hex())
    }

    /// Whether it is there as far as one sees without reading it.
    fn has(&self, blob: &Descriptor) -> bool {
        let file = self.blob(blob).and_then(|file| {
            let path = self.blob_path(&blob.digest);
            file.metadata().map_err(Error::file(path))
        });
        file.is_ok_and(|metadata| metadata.len() == blob.size)
    }

    /// Whether all its blobs are there.
    pub(super) fn is_complete(&self, image: &Image) -> bool {
        let parts = image.manifest.layers.iter().chain([&image.manifest.config]);
        parts.into_iter().all(|blob| self.has(blob))
    }

    /// A blob that is there.
    pub(super) fn blob(&self, blob: &Descriptor) -> Result<File> {
        let file = File::open(self.blob_path(&blob.digest)).ok();
        let is_file = |file: &File| file.metadata().is_ok_and(|metadata| metadata.is_file());
        file.filter(is_file).ok_or_else(|| Error::BlobMissing {
            origin: ORIGIN.into(),
            digest: blob.digest.to_string(),
        })
    }

    /// Reads a blob again; one that has been damaged goes, so that it is copied anew next time.
    pub(super) fn check(&self, blob: &Descriptor) -> Result<()> {
        let path = self.blob_path(&blob.digest);
        let mut summed = Summed::new(self.blob(blob)?);
        io::copy(&mut summed, &mut io::sink()).map_err(Error::file(&path))?;
        source::check(ORIGIN, blob, summed.finish()).inspect_err(|_| drop(fs::remove_file(&path)))
    }

    /// Copies all blobs of an image that are not there.
    pub(super) fn copy(
        &self,
        source: &mut dyn Source,
        manifest: &Descriptor,
        progress: Progress<'_>,
    ) -> Result<Image> {
        let image = platform::image(source, manifest)?;
        let parts = image.manifest.layers.iter();
        let parts: Vec<&Descriptor> = parts.chain([&image.manifest.config, manifest]).collect();
        let missing: Vec<_> = parts.into_iter().filter(|blob| !self.has(blob)).collect();
        let whole = missing.iter().map(|blob| blob.size).sum();
        let mut done = 0;
        for blob in missing {
            self.add(source, blob, &mut |bytes| {
                progress(Stage::Copying, done + bytes, whole)
            })?;
            done += blob.size;
        }
        Ok(image)
    }

    fn add(
        &self,
        source: &mut dyn Source,
        blob: &Descriptor,
        told: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let origin = source.origin();
        let draft = Draft(self.blobs().join(format!("{DRAFT}{}", blob.digest.hex())));
        let mut file = File::create(&draft.0).map_err(Error::file(&draft.0))?;
        // One byte more than there should be tells that there is more.
        let mut bytes = Summed::new(source.open(blob)?.take(blob.size.saturating_add(1)));
        copy(&mut bytes, &mut file, &origin, &draft.0, told)?;
        source::check(&origin, blob, bytes.finish())?;
        publish(&draft.0, &self.blob_path(&blob.digest))
    }

    /// An image that was copied.
    pub(super) fn image(&self, id: &Digest) -> Result<Image> {
        let read = |digest: &Digest| {
            let blob = self.document(digest)?;
            let mut text = Vec::new();
            let path = self.blob_path(digest);
            self.blob(&blob)?
                .read_to_end(&mut text)
                .map_err(Error::file(&path))?;
            match Digest::of(&text) == *digest {
                true => Ok(text),
                false => Err(self.check(&blob).err().unwrap_or(Error::BlobMissing {
                    origin: ORIGIN.into(),
                    digest: digest.to_string(),
                })),
            }
        };
        let manifest: Manifest = source::parse(ORIGIN, "manifest", &read(id)?)?;
        let text = read(&manifest.config.digest)?;
        let configuration: Configuration = source::parse(ORIGIN, "configuration", &text)?;
        Ok(Image {
            id: id.clone(),
            manifest,
            configuration,
        })
    }

    fn document(&self, digest: &Digest) -> Result<Descriptor> {
        let metadata = fs::metadata(self.blob_path(digest)).map_err(|_| Error::BlobMissing {
            origin: ORIGIN.into(),
            digest: digest.to_string(),
        })?;
        Ok(Descriptor {
            media_type: String::new(),
            digest: digest.clone(),
            size: metadata.len(),
            platform: None,
            annotations: Default::default(),
        })
    }

    /// Removes the blobs and disks that no name leads to. Who holds the lock calls it.
    pub(super) fn collect(&self) -> Result<()> {
        let mut kept = BTreeSet::new();
        for listed in self.list()? {
            kept.insert(listed.id.hex().to_string());
            // Of an image that cannot be read the rest is of no use.
            if let Ok(image) = self.image(&listed.id) {
                let parts = image.manifest.layers.iter().chain([&image.manifest.config]);
                kept.extend(parts.map(|blob| blob.digest.hex().to_string()));
            }
        }
        for folder in [self.blobs(), self.roots()] {
            let entries = fs::read_dir(&folder).map_err(Error::file(&folder))?;
            for entry in entries.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let path = entry.path();
                let is_kept = kept.contains(name.trim_end_matches(".ext4"));
                if !is_kept && (folder != self.roots() || super::Use::is_free(&path)?) {
                    super::clear(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Bytes that an image's blobs and its disk take.
    pub fn bytes_of(&self, id: &Digest) -> (u64, u64) {
        use std::os::unix::fs::MetadataExt;
        let layers = self.image(id).map_or(0, |image| {
            image.manifest.layers.iter().map(|layer| layer.size).sum()
        });
        let root = fs::metadata(self.root_path(id)).map_or(0, |metadata| metadata.blocks() * 512);
        (layers, root)
    }
}

fn copy(
    from: &mut dyn Read,
    to: &mut File,
    origin: &str,
    path: &std::path::Path,
    told: &mut dyn FnMut(u64),
) -> Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut done = 0;
    loop {
        let count = from.read(&mut chunk).map_err(Error::file(origin))?;
        let Some(bytes) = chunk.get(..count).filter(|bytes| !bytes.is_empty()) else {
            return Ok(());
        };
        io::Write::write_all(to, bytes).map_err(Error::file(path))?;
        done += count as u64;
        told(done);
    }
}
