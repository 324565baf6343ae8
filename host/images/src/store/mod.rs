//! The user's images: an OCI image layout, so that other tools read it, with a disk for each image that was run.
//!
//! ```text
//! oci-layout, index.json   the names, each with its manifest's digest
//! blobs/sha256/HEX         manifests, configurations, layers: each once, whoever uses it
//! roots/HEX.ext4           the disk of the image whose manifest is HEX
//! lock                     held (flock(2)) by who changes anything
//! ```
//!
//! Invariants
//! - **Whole**: a blob or a disk has its name only when it is complete and on the host's disk: it is made under another
//!   name and renamed. `index.json` changes by one rename, after all that it names is there.
//! - **One at a time**: drafts belong to who holds the lock, so whoever takes it removes those that are left. Readers need no lock.
//! - **In use**: a machine holds its disk's file locked, and QEMU inherits that. Removing an image takes the same
//!   lock first.

mod blobs;
mod lock;
mod names;

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::accounts::Account;
use crate::digest::Digest;
use crate::document::{Configuration, Manifest, Process};
use crate::error::{Error, Result};
use crate::reference::{Name, Reference};
use crate::source::{self, Source};
use crate::{Progress, Stage, platform, root};
use lock::{Lock, Use};
pub use names::Listed;

/// The folder of images.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// An image of the store.
#[derive(Clone, Debug)]
pub struct Image {
    /// The digest of its manifest.
    pub id: Digest,
    /// Its parts.
    pub manifest: Manifest,
    /// How it is to be run.
    pub configuration: Configuration,
}

/// The disk of an image, which stays there as long as this does, or a process that inherited it.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    uuid: [u8; 16],
    held: Use,
}

impl Store {
    /// The store in that folder, which need not be there.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    fn roots(&self) -> PathBuf {
        self.folder.join("roots")
    }

    fn root_path(&self, id: &Digest) -> PathBuf {
        self.roots().join(format!("{}.ext4", id.hex()))
    }

    /// Takes the lock, makes the folders, and removes what others left who did not finish.
    fn change(&self) -> Result<Lock> {
        for folder in [&self.folder, &self.blobs(), &self.roots()] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(Error::own(folder))?;
        }
        let lock = Lock::take(&self.folder.join("lock"))?;
        for folder in [self.folder.clone(), self.blobs(), self.roots()] {
            remove_drafts(&folder);
        }
        Ok(lock)
    }

    /// The image that the store has under the name of `reference`, without a look whether there is a newer one.
    ///
    /// Errors: what is wrong with the reference, or with the store.
    pub fn kept(&self, reference: &Reference) -> Result<Option<(Name, Image)>> {
        let name = match (reference, source::open(reference)?) {
            (Reference::Stored(name), _) => Some(name.clone()),
            (_, source) => source.and_then(|source| source.name()),
        };
        let found = match name {
            Some(name) => self.find(&name)?,
            None => None,
        };
        let Some(found) = found else {
            return Ok(None);
        };
        match self.image(&found.id) {
            Ok(image) => Ok(self.is_complete(&image).then_some((found.name, image))),
            // It can be brought again from where it came.
            Err(_) if !matches!(reference, Reference::Stored(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Looks up a name; one that begins with a transport is copied into the store, unless it is there.
    ///
    /// Errors: all that can be wrong with an image, each before anything of it has a name.
    pub fn fetch(&self, reference: &Reference, progress: Progress<'_>) -> Result<(Name, Image)> {
        let Some(mut source) = source::open(reference)? else {
            let Reference::Stored(name) = reference else {
                return Err(no_such(reference));
            };
            let found = self.find(name)?.ok_or_else(|| no_such(reference))?;
            let image = self.image(&found.id)?;
            return Ok((found.name, image));
        };
        let name = source.name().ok_or_else(|| Error::BadReference {
            text: reference.to_string(),
            form: "its name has letters that an image's name may not have, so rename it",
        })?;
        let manifest = platform::manifest(source.as_mut(), reference)?;
        if self.is_named(&name, &manifest.digest)?
            && let Ok(image) = self.image(&manifest.digest)
            && self.is_complete(&image)
        {
            return Ok((name, image));
        }
        let _lock = self.change()?;
        let copied = self.copy(source.as_mut(), &manifest, progress);
        let named = copied.and_then(|image| {
            self.set_name(&name, &manifest)?;
            Ok((name, image))
        });
        // A connection that breaks is made again, and finds the blobs that are whole.
        if !matches!(&named, Err(error) if error.is_of_registry()) {
            self.collect()?;
        }
        named
    }

    fn is_named(&self, name: &Name, id: &Digest) -> Result<bool> {
        let mut images = self.list()?.into_iter();
        Ok(images.any(|image| image.name == *name && image.id == *id))
    }

    /// Makes an image of one layer's archive.
    pub fn build(&self, name: &Name, archive: Vec<u8>, process: Process) -> Result<Image> {
        let mut made = source::Made::new(name.clone(), archive, process);
        let _lock = self.change()?;
        let manifest = made.top()?;
        let image = self.copy(&mut made, &manifest, &mut |_, _, _| {})?;
        self.set_name(name, &manifest)?;
        self.collect()?;
        Ok(image)
    }

    /// The disk of an image, made now if nobody has run it before. `mke2fs` is where that program is.
    pub fn root(&self, image: &Image, mke2fs: &Path, progress: Progress<'_>) -> Result<Root> {
        let path = self.root_path(&image.id);
        if let Some(held) = self.whole_root(image)? {
            return Ok(self.held(image, held));
        }
        let _lock = self.change()?;
        if let Some(held) = self.whole_root(image)? {
            return Ok(self.held(image, held));
        }
        // A machine that runs on a damaged one has it open.
        clear(&path)?;
        self.make_root(image, &path, mke2fs, progress)?;
        let held = Use::shared(&path)?.ok_or_else(|| Error::InUse {
            name: image.id.short().into(),
        })?;
        Ok(self.held(image, held))
    }

    /// The image's disk, if there is one that this host's disk has not cut off or replaced since it was made. Whether
    /// its files are what they were only the machine sees that reads them.
    fn whole_root(&self, image: &Image) -> Result<Option<Use>> {
        let held = Use::shared(&self.root_path(&image.id))?;
        Ok(held.filter(|held| root::is_whole(held.file(), &image.id.uuid())))
    }

    fn held(&self, image: &Image, held: Use) -> Root {
        Root {
            path: self.root_path(&image.id),
            uuid: image.id.uuid(),
            held,
        }
    }

    fn make_root(
        &self,
        image: &Image,
        path: &Path,
        mke2fs: &Path,
        progress: Progress<'_>,
    ) -> Result<()> {
        let layers = image.manifest.layers.iter();
        let layers = layers.map(|layer| Ok((layer.digest.clone(), self.blob(layer)?)));
        let layers = layers.collect::<Result<Vec<_>>>()?;
        let draft = Draft(self.roots().join(format!("{DRAFT}{}", image.id.hex())));
        root::make(image, &layers, &draft.0, mke2fs, progress)
            .map_err(|error| self.blame(image, error))?;
        progress(Stage::Flushing, 0, 1);
        publish(&draft.0, path)
    }

    /// A layer that cannot be unpacked may be one that this host's disk has damaged.
    fn blame(&self, image: &Image, error: Error) -> Error {
        let Error::BadLayer { layer, .. } = &error else {
            return error;
        };
        let layers = &image.manifest.layers;
        let blob = layers.iter().find(|blob| blob.digest.to_string() == *layer);
        match blob.map(|blob| self.check(blob)) {
            Some(Err(damaged)) => damaged,
            _ => error,
        }
    }

    /// Takes a name away, and all that nobody else needs.
    ///
    /// Errors: `NoSuchImage`; `InUse` if a machine runs on it.
    pub fn remove(&self, text: &str) -> Result<Name> {
        let _lock = self.change()?;
        let Listed { name, id } = self.named(text)?;
        let is_last = self.list()?.iter().filter(|image| image.id == id).count() == 1;
        let root = self.root_path(&id);
        if is_last && root.exists() && !Use::is_free(&root)? {
            return Err(Error::InUse {
                name: name.to_string(),
            });
        }
        self.forget_name(&name)?;
        self.collect()?;
        Ok(name)
    }
}

impl Root {
    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// By which a machine finds it.
    pub fn uuid(&self) -> [u8; 16] {
        self.uuid
    }

    /// Programs that are started from now on keep it, too.
    pub fn inherit(&self) -> Result<()> {
        self.held.inherit(&self.path)
    }

    /// Programs that are started from now on do not.
    pub fn withhold(&self) -> Result<()> {
        self.held.withhold(&self.path)
    }

    /// User and group of what the image has at `path`; root's if that is nothing.
    pub fn owner(&self, path: &str) -> Result<(u32, u32)> {
        Ok(root::owner(&self.path, path)?.unwrap_or((0, 0)))
    }

    /// The user that the image or the command line names: `USER[:GROUP]`.
    ///
    /// Errors: `UnknownUser`.
    pub fn account(&self, wanted: &str) -> Result<Account> {
        let read = |path| Ok(root::read_file(&self.path, path)?.unwrap_or_default());
        Account::find(wanted, &read("/etc/passwd")?, &read("/etc/group")?)
    }
}

fn no_such(reference: &Reference) -> Error {
    Error::NoSuchImage {
        name: reference.to_string(),
        way_out:
            "`sietch images` lists those there are, and `sietch pull docker://HOST/NAME` brings one"
                .into(),
    }
}

/// How the names of files begin that are in the making.
const DRAFT: &str = ".new-";

/// A file in the making, removed unless it is published.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        // It has another name if all went well, and else whoever takes the lock next removes it.
        let _ = fs::remove_file(&self.0);
    }
}

fn remove_drafts(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(DRAFT)) {
        // What cannot be removed costs room and nothing else.
        let _ = clear(&entry.path());
    }
}

/// Removes what stands where a file is to be, whatever it is.
fn clear(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => return Ok(()),
    };
    removed.map_err(Error::file(path))
}

/// Gives a finished file its name, so that a loss of power leaves it whole or not there.
fn publish(draft: &Path, path: &Path) -> Result<()> {
    let file = File::open(draft).and_then(|file| file.sync_all());
    file.map_err(Error::file(draft))?;
    if path.is_dir() {
        clear(path)?;
    }
    fs::rename(draft, path).map_err(Error::file(path))?;
    let folder = path.parent().unwrap_or(path);
    let kept = File::open(folder).and_then(|folder| folder.sync_all());
    kept.map_err(Error::file(folder))
}
