//! The disk that an image becomes: its merged layers as one ext4 file system, written once and only read from then on.
//!
//! The layers are read twice. First their headers make the [`Tree`], so that the disk's size is known and nothing is
//! written that a higher layer takes away; at the same time each layer's bytes are compared with the digest that the configuration
//! has for it. Then names and owners are written by `core/ext4`, which needs no root for that, and the bytes of files
//! follow in the order in which layers have them.
//!
//! There is no journal: a disk that was not finished is not used, and a finished one does not change.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use ext4::{Access, Change, Expect, FileType, New, ROOT_INODE, Summary, Time, Volume};

use crate::digest::{Digest, Summed};
use crate::disk::{Disk, Failure};
use crate::error::{Error, Result};
use crate::layer::{self, Entry, Stop};
use crate::store::Image;
use crate::tree::{Content, Node, ROOT, Tree};
use crate::{Progress, Stage};

/// What `core/ext4` provides, whatever the settings of this host are.
const FEATURES: &str = "none,ext_attr,dir_index,filetype,extent,64bit,flex_bg,sparse_super,large_file,huge_file,\
dir_nlink,extra_isize,metadata_csum";
const BLOCK_BYTES: u64 = 4096;
const INODE_BYTES: u64 = 256;
/// What a file system keeps for itself beside tables and bitmaps, and what our sum may lack: it is a hole in the file.
const SLACK_BYTES: u64 = 16 << 20;
/// Bytes of a file that are written at once; so many zeroes in a row stay a hole.
const CHUNK_BYTES: usize = 1 << 20;
/// What machines mount something upon, or cover.
const FOLDERS: [&str; 4] = ["dev", "proc", "sys", "run"];
/// Where everybody may write.
const TEMPORARY: (&str, u16) = ("tmp", 0o1777);
const FILES: [&str; 3] = ["hostname", "hosts", "resolv.conf"];

/// Makes the disk of `image` in the file `path`, which nobody reads before this returns.
pub(crate) fn make(
    image: &Image,
    layers: &[(Digest, File)],
    path: &Path,
    mke2fs: &Path,
    progress: Progress<'_>,
) -> Result<()> {
    let mut tree = merge(image, layers, progress)?;
    add_places(image, &mut tree).map_err(|reason| bad(&image.id, reason))?;
    let file = format(&image.id, &tree, path, mke2fs)?;
    let (disk, failure) = Disk::new(file).map_err(Error::file(path))?;
    let told = |error| disk_error(&failure, path, error);
    let (mut volume, _) = Volume::mount(Box::new(disk), Access::ReadWrite)
        .map_err(|error| told(mount_error(error)))?;
    let inodes = write_names(&mut volume, &tree).map_err(told)?;
    let mut bytes = Bytes {
        volume: &mut volume,
        wanted: tree.wanted(),
        inodes,
        failure: &failure,
        path,
        buffer: vec![0; CHUNK_BYTES],
    };
    for (number, (digest, file)) in layers.iter().enumerate() {
        bytes.write_layer(number, digest, file, progress)?;
    }
    volume.unmount().map_err(told)
}

fn bad(layer: &Digest, reason: String) -> Error {
    Error::BadLayer {
        layer: layer.to_string(),
        reason,
    }
}

fn mount_error(error: ext4::MountError) -> ext4::Error {
    match error {
        ext4::MountError::Failed(error) => error,
        _ => ext4::Error::Unsupported,
    }
}

/// What the host says, if it is its fault.
fn disk_error(failure: &Failure, path: &Path, error: ext4::Error) -> Error {
    match failure.take() {
        Some(error) => Error::file(path)(error),
        None => Error::NotAnImage {
            origin: path.display().to_string(),
            reason: format!("its files do not fit an ext4 file system ({error:?})"),
        },
    }
}

/// The bytes of a layer's archive.
fn archive(digest: &Digest, blob: &File) -> Result<Box<dyn Read>> {
    let blob = blob.try_clone().map_err(Error::file(digest.hex()))?;
    std::io::Seek::rewind(&mut &blob).map_err(Error::file(digest.hex()))?;
    layer::unpacked(blob).map_err(|error| bad(digest, error.to_string()))
}

fn stopped(digest: &Digest) -> impl Fn(Stop) -> Error {
    move |stop| match stop {
        Stop::Bad(reason) => bad(digest, reason),
        Stop::Other(error) => error,
    }
}

/// The first pass.
fn merge(image: &Image, layers: &[(Digest, File)], progress: Progress<'_>) -> Result<Tree> {
    let mut tree = Tree::new();
    let diff_ids = &image.configuration.rootfs.diff_ids;
    for (number, ((digest, blob), diff_id)) in layers.iter().zip(diff_ids).enumerate() {
        progress(Stage::Reading, number as u64, layers.len() as u64);
        let mut archive = Summed::new(archive(digest, blob)?);
        layer::visit(&mut archive, &mut |entry, read: Entry, _| {
            tree.apply((number, entry), read).map_err(Stop::Bad)
        })
        .map_err(stopped(digest))?;
        let (found, _) = archive.finish();
        if found != *diff_id {
            return Err(bad(
                digest,
                format!("it unpacks to {found} and should be {diff_id}"),
            ));
        }
    }
    Ok(tree)
}

/// Adds what each machine needs and an image may lack.
fn add_places(image: &Image, tree: &mut Tree) -> Result<(), String> {
    let layer = image.manifest.layers.len();
    let words = |path: &str| -> Vec<Vec<u8>> {
        let words = path
            .split('/')
            .filter(|word| !matches!(*word, "" | "." | ".."));
        words.map(|word| word.as_bytes().to_vec()).collect()
    };
    let process = &image.configuration.config;
    let volumes = process.volumes.keys().map(String::as_str);
    let folders = FOLDERS.into_iter().chain(volumes);
    for folder in folders.chain([process.working_dir.as_str()]) {
        tree.directory(&words(folder), layer)?;
    }
    let (temporary, mode) = (words(TEMPORARY.0), TEMPORARY.1);
    if tree.find(&temporary)?.is_none() {
        let made = tree.directory(&temporary, layer)?;
        tree.set_mode(made, mode);
    }
    let mut files = FILES.into_iter();
    files.try_for_each(|file| tree.ensure_file(&words(&format!("etc/{file}")), layer))
}

/// An empty file system with room for the tree.
fn format(id: &Digest, tree: &Tree, path: &Path, mke2fs: &Path) -> Result<File> {
    let nodes = tree.reachable();
    let blocks: u64 = nodes.iter().map(|&node| blocks_of(tree.node(node))).sum();
    let inodes = nodes.len() as u64 + 64;
    let content = blocks * BLOCK_BYTES + inodes * INODE_BYTES;
    let bytes = (content + content / 16 + SLACK_BYTES).next_multiple_of(1 << 20);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(Error::file(path))?;
    file.set_len(bytes).map_err(Error::file(path))?;
    let uuid = uuid_text(&id.uuid());
    let options = format!("root_owner=0:0,nodiscard,lazy_itable_init=1,hash_seed={uuid}");
    let made = Command::new(mke2fs)
        .args([
            "-q", "-F", "-t", "ext4", "-b", "4096", "-I", "256", "-m", "0",
        ])
        .args(["-O", FEATURES, "-U", &uuid, "-N", &inodes.to_string()])
        .args(["-E", &options])
        .arg(path)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(Error::file(mke2fs))?;
    match made.status.success() {
        true => Ok(file),
        false => Err(mke2fs_error(path, &made)),
    }
}

fn mke2fs_error(path: &Path, made: &Output) -> Error {
    /// What ends a program that writes beyond RLIMIT_FSIZE (setrlimit(2)).
    const SIGXFSZ: i32 = 25;
    let said = String::from_utf8_lossy(&made.stderr);
    if said.contains("No space left on device") {
        return Error::NoRoom {
            folder: path.parent().unwrap_or(path).into(),
        };
    }
    if said.contains("File too large") || made.status.signal() == Some(SIGXFSZ) {
        return Error::FileTooLarge { path: path.into() };
    }
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.map_or_else(|| made.status.to_string(), ToString::to_string);
    Error::Mke2fs {
        said: last.trim().trim_end_matches('.').into(),
    }
}

/// Blocks that a node takes at most; a directory's entries have eight bytes beside the name, and its blocks may be half full.
fn blocks_of(node: &Node) -> u64 {
    let own = match &node.content {
        Content::File { bytes, .. } => bytes.div_ceil(BLOCK_BYTES) + bytes / (1 << 27),
        Content::Directory(names) => {
            let bytes: u64 = names.keys().map(|name| name.len() as u64 + 12).sum();
            2 + bytes * 2 / BLOCK_BYTES
        }
        Content::Symlink(target) => u64::from(target.len() >= 60),
        Content::Special { .. } => 0,
    };
    own + u64::from(!node.meta.attributes.is_empty())
}

/// Makes all files, still without their bytes; returns the inode of each node.
fn write_names(volume: &mut Volume, tree: &Tree) -> Result<HashMap<usize, u32>, ext4::Error> {
    remove_lost_and_found(volume)?;
    let mut inodes = HashMap::from([(ROOT, ROOT_INODE)]);
    let mut directories = vec![ROOT];
    let mut at = 0;
    while let Some(&directory) = directories.get(at) {
        at += 1;
        let Content::Directory(names) = &tree.node(directory).content else {
            continue;
        };
        let parent = inodes.get(&directory).copied().unwrap_or(ROOT_INODE);
        for (name, named) in names {
            let node = tree.node(named.node);
            if let Some(&inode) = inodes.get(&named.node) {
                volume.link(parent, name, inode, node.meta.modified)?;
                continue;
            }
            inodes.insert(named.node, create(volume, parent, name, node)?);
            if matches!(node.content, Content::Directory(_)) {
                directories.push(named.node);
            }
        }
    }
    // What is made in a directory changes its time, and the root was not ours.
    for directory in directories {
        let meta = &tree.node(directory).meta;
        let change = Change {
            mode: Some(meta.mode),
            uid: Some(meta.uid),
            gid: Some(meta.gid),
            accessed: Some(meta.modified),
            modified: Some(meta.modified),
        };
        if let Some(&inode) = inodes.get(&directory) {
            volume.change(inode, &change, meta.modified)?;
        }
    }
    Ok(inodes)
}

fn remove_lost_and_found(volume: &mut Volume) -> Result<(), ext4::Error> {
    let now = Time::default();
    match volume.rmdir(ROOT_INODE, b"lost+found", now) {
        Ok(gone) => volume.evict(gone.inode, now),
        Err(ext4::Error::NotFound) => Ok(()),
        Err(error) => Err(error),
    }
}

fn create(volume: &mut Volume, parent: u32, name: &[u8], node: &Node) -> Result<u32, ext4::Error> {
    let meta = &node.meta;
    let (kind, device, target) = match &node.content {
        Content::Directory(_) => (FileType::Directory, (0, 0), &[][..]),
        Content::File { .. } => (FileType::Regular, (0, 0), &[][..]),
        Content::Symlink(target) => (FileType::Symlink, (0, 0), target.as_slice()),
        Content::Special { kind, device } => (*kind, *device, &[][..]),
    };
    let new = New {
        kind,
        mode: if kind == FileType::Symlink {
            0o777
        } else {
            meta.mode
        },
        uid: meta.uid,
        gid: meta.gid,
        device,
        target,
    };
    let inode = volume.create(parent, name, &new, meta.modified)?;
    for (name, value) in &meta.attributes {
        volume.set_attribute(inode, name, value, Expect::Any, meta.modified)?;
    }
    Ok(inode)
}

/// The second pass.
struct Bytes<'a> {
    volume: &'a mut Volume,
    wanted: HashMap<(usize, usize), usize>,
    inodes: HashMap<usize, u32>,
    failure: &'a Failure,
    path: &'a Path,
    buffer: Vec<u8>,
}

impl Bytes<'_> {
    fn write_layer(
        &mut self,
        number: usize,
        digest: &Digest,
        blob: &File,
        progress: Progress<'_>,
    ) -> Result<()> {
        if !self.wanted.keys().any(|(layer, _)| *layer == number) {
            return Ok(());
        }
        let mut archive = archive(digest, blob)?;
        let whole = self.wanted.len() as u64;
        layer::visit(&mut archive, &mut |entry, read, bytes| {
            let Some(node) = self.wanted.remove(&(number, entry)) else {
                return Ok(());
            };
            progress(Stage::Writing, whole - self.wanted.len() as u64, whole);
            match self.inodes.get(&node) {
                Some(&inode) => self.write_file(inode, read.meta.modified, bytes),
                None => Ok(()),
            }
        })
        .map_err(stopped(digest))
    }

    fn write_file(&mut self, inode: u32, modified: Time, bytes: &mut dyn Read) -> Result<(), Stop> {
        let mut at = 0;
        loop {
            let mut chunk = std::mem::take(&mut self.buffer);
            let length = fill(bytes, &mut chunk)?;
            let data = chunk.get(..length).unwrap_or(&[]);
            let stored = match data.iter().all(|&byte| byte == 0) {
                true => self.volume.truncate(inode, at + length as u64, modified),
                false => self.write_all(inode, at, data, modified),
            };
            self.buffer = chunk;
            stored.map_err(|error| Stop::Other(disk_error(self.failure, self.path, error)))?;
            at += length as u64;
            if length < CHUNK_BYTES {
                return Ok(());
            }
        }
    }

    fn write_all(
        &mut self,
        inode: u32,
        mut at: u64,
        mut data: &[u8],
        modified: Time,
    ) -> Result<(), ext4::Error> {
        while !data.is_empty() {
            let count = self.volume.write(inode, at, data, modified)?;
            if count == 0 {
                return Err(ext4::Error::NoSpace);
            }
            at += count as u64;
            data = data.get(count..).unwrap_or(&[]);
        }
        Ok(())
    }
}

/// Reads until the buffer is full or nothing is left.
fn fill(from: &mut dyn Read, into: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < into.len() {
        match from.read(&mut into[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// As programs write it: `8-4-4-4-12` digits.
fn uuid_text(uuid: &[u8; 16]) -> String {
    let digits: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts.map(|part| digits[part].to_string()).join("-")
}

/// Whether a finished disk is as long as it was, and still of that image.
pub(crate) fn is_whole(disk: &File, uuid: &[u8; 16]) -> bool {
    let mut superblock = [0; Summary::BYTES];
    let read = disk.read_exact_at(&mut superblock, Summary::OFFSET);
    let summary = read.ok().and_then(|()| Summary::of(&superblock));
    let bytes = disk.metadata().map_or(0, |metadata| metadata.len());
    summary.is_some_and(|own| own.uuid == *uuid && own.bytes <= bytes && !own.has_errors)
}

/// A finished disk, to look something up.
struct Finished<'a> {
    volume: Volume,
    failure: Failure,
    path: &'a Path,
}

impl<'a> Finished<'a> {
    fn open(path: &'a Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::file(path))?;
        let (device, failure) = Disk::read_only(file).map_err(Error::file(path))?;
        let mounted = Volume::mount(Box::new(device), Access::Read);
        let (volume, _) =
            mounted.map_err(|error| disk_error(&failure, path, mount_error(error)))?;
        Ok(Self {
            volume,
            failure,
            path,
        })
    }

    /// The inode at `path`, if it is there; links are not followed.
    fn find(&mut self, path: &str) -> Result<Option<u32>> {
        let mut inode = ROOT_INODE;
        for word in path.split('/').filter(|word| !word.is_empty()) {
            inode = match self.volume.lookup(inode, word.as_bytes()) {
                Ok(inode) => inode,
                Err(ext4::Error::NotFound | ext4::Error::NotDirectory) => return Ok(None),
                Err(error) => return Err(self.told(error)),
            };
        }
        Ok(Some(inode))
    }

    fn told(&self, error: ext4::Error) -> Error {
        disk_error(&self.failure, self.path, error)
    }
}

/// A small file of a finished disk, `None` if it is not there.
pub(crate) fn read_file(disk: &Path, path: &str) -> Result<Option<String>> {
    const BYTES_MAX: usize = 1 << 20;
    let mut disk = Finished::open(disk)?;
    let Some(inode) = disk.find(path)? else {
        return Ok(None);
    };
    let mut bytes = vec![0; BYTES_MAX];
    match disk.volume.read(inode, 0, &mut bytes) {
        Ok(length) => {
            bytes.truncate(length);
            Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
        }
        Err(ext4::Error::Invalid | ext4::Error::IsDirectory) => Ok(None),
        Err(error) => Err(disk.told(error)),
    }
}

/// User and group of what a finished disk has at `path`, `None` if that is nothing.
pub(crate) fn owner(disk: &Path, path: &str) -> Result<Option<(u32, u32)>> {
    let mut disk = Finished::open(disk)?;
    let Some(inode) = disk.find(path)? else {
        return Ok(None);
    };
    let inode = disk.volume.inode(inode).map_err(|error| disk.told(error))?;
    Ok(Some((inode.uid, inode.gid)))
}
