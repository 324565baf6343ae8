//! Images composed in memory, written as a layout of the OCI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use images::{Digest, Error, Image, Name, Reference, Root, Store};
use serde_json::{Value, json};

/// A folder that goes when this is dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sietch-images-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A layer's archive in the making.
pub struct Layer(tar::Builder<Vec<u8>>);

impl Layer {
    pub fn new() -> Self {
        Self(tar::Builder::new(Vec::new()))
    }

    /// An entry of that kind; the path is taken as it is, however wrong.
    pub fn entry(mut self, kind: tar::EntryType, path: &str, target: &str, bytes: &[u8]) -> Self {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_gnu_mut().unwrap().linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(if kind.is_dir() { 0o750 } else { 0o640 });
        header.set_uid(101);
        header.set_gid(102);
        header.set_mtime(1_000_000_000);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        self.0.append(&header, bytes).unwrap();
        self
    }

    pub fn file(self, path: &str, bytes: &[u8]) -> Self {
        self.entry(tar::EntryType::Regular, path, "", bytes)
    }

    pub fn folder(self, path: &str) -> Self {
        self.entry(tar::EntryType::Directory, path, "", b"")
    }

    pub fn symlink(self, path: &str, target: &str) -> Self {
        self.entry(tar::EntryType::Symlink, path, target, b"")
    }

    pub fn hard_link(self, path: &str, target: &str) -> Self {
        self.entry(tar::EntryType::Link, path, target, b"")
    }

    /// PAX words for the entry that follows.
    pub fn pax(mut self, key: &str, value: &str) -> Self {
        self.0
            .append_pax_extensions([(key, value.as_bytes())])
            .unwrap();
        self
    }

    pub fn bytes(self) -> Vec<u8> {
        self.0.into_inner().unwrap()
    }
}

/// A layout in the making.
pub struct Layout {
    pub folder: Folder,
    pub architecture: &'static str,
    pub process: Value,
}

impl Layout {
    pub fn new() -> Self {
        let folder = Folder::new();
        fs::create_dir_all(folder.0.join("img/blobs/sha256")).unwrap();
        fs::write(
            folder.0.join("img/oci-layout"),
            r#"{"imageLayoutVersion":"1.0.0"}"#,
        )
        .unwrap();
        Self {
            folder,
            architecture: "amd64",
            process: json!({"Cmd": ["/bin/it"]}),
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.0.join("img")
    }

    pub fn blob_path(&self, digest: &str) -> PathBuf {
        self.path()
            .join("blobs/sha256")
            .join(digest.trim_start_matches("sha256:"))
    }

    /// Writes a blob; returns its descriptor.
    pub fn blob(&self, media_type: &str, bytes: &[u8]) -> Value {
        let digest = Digest::of(bytes);
        fs::write(self.path().join("blobs/sha256").join(digest.hex()), bytes).unwrap();
        json!({"mediaType": media_type, "digest": digest.to_string(), "size": bytes.len()})
    }

    /// Writes an image of these layers (their archives, and as what they are stored); returns its descriptor.
    pub fn image(&self, layers: &[(Vec<u8>, Vec<u8>)]) -> Value {
        let diff_ids: Vec<_> = layers
            .iter()
            .map(|(plain, _)| Digest::of(plain).to_string())
            .collect();
        let stored = layers
            .iter()
            .map(|(_, stored)| self.blob("application/vnd.oci.image.layer.v1.tar", stored));
        let stored: Vec<_> = stored.collect();
        let configuration = json!({
            "architecture": self.architecture, "os": "linux", "config": self.process,
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        });
        let configuration = self.blob(
            "application/vnd.oci.image.config.v1+json",
            configuration.to_string().as_bytes(),
        );
        let manifest = json!({"schemaVersion": 2, "config": configuration, "layers": stored});
        self.blob(
            "application/vnd.oci.image.manifest.v1+json",
            manifest.to_string().as_bytes(),
        )
    }

    /// Writes the index.
    pub fn index(&self, images: &[Value]) {
        let index = json!({"schemaVersion": 2, "manifests": images});
        fs::write(self.path().join("index.json"), index.to_string()).unwrap();
    }

    /// A layout with one image of plain layers.
    pub fn of(layers: Vec<Layer>) -> Self {
        let layout = Self::new();
        let layers = layers.into_iter().map(Layer::bytes);
        let layers: Vec<_> = layers.map(|bytes| (bytes.clone(), bytes)).collect();
        layout.index(&[layout.image(&layers)]);
        layout
    }

    pub fn reference(&self) -> Reference {
        format!("oci:{}", self.path().display()).parse().unwrap()
    }

    pub fn store(&self) -> Store {
        Store::new(self.folder.0.join("store"))
    }

    pub fn fetch(&self) -> Result<(Name, Image), Error> {
        self.store().fetch(&self.reference(), &mut |_, _, _| {})
    }

    /// Fetched and made a disk.
    pub fn root(&self) -> Result<Root, Error> {
        let (_, image) = self.fetch()?;
        root(&self.store(), &image)
    }
}

pub fn root(store: &Store, image: &Image) -> Result<Root, Error> {
    store.root(image, Path::new("/sbin/mke2fs"), &mut |_, _, _| {})
}

/// What e2fsck finds in a disk: nothing.
pub fn expect_clean(path: &Path) {
    let found = Command::new("/sbin/e2fsck")
        .args(["-fn"])
        .arg(path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&found.stdout);
    assert!(found.status.success(), "{said}");
}

/// What debugfs prints.
pub fn debugfs(path: &Path, request: &str) -> String {
    let mut command = Command::new("/sbin/debugfs");
    let said = command.args(["-R", request]).arg(path).output().unwrap();
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// All files below a folder, by their names.
pub fn files_below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path().is_dir() {
                true => waiting.push(entry.path()),
                false => found.push(entry.file_name().to_string_lossy().into_owned()),
            }
        }
    }
    found.sort();
    found
}
