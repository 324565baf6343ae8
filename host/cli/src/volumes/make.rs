//! A new volume: an image by mke2fs(8), under its name only when it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use super::progress::Progress;
use super::store::{Store, Volume};
use super::tools;
use crate::failure::Failure;
use crate::flags::{ByteSize, told};

/// What `core/ext4` provides, whatever the settings of this host are.
const FEATURES: &str = "none,has_journal,ext_attr,resize_inode,dir_index,filetype,extent,64bit,flex_bg,\
sparse_super,large_file,huge_file,dir_nlink,extra_isize,metadata_csum";
/// As much of a name as a superblock has room for.
const LABEL_BYTES: usize = 16;
/// Of an image's bytes, those that are the file system's own, at most: one of so many.
const OWN_SHARE: u64 = 20;
/// Bytes that journal and tables take of a small image.
const SMALL_JOURNAL: u64 = 6 << 20;
/// How often mke2fs is looked at.
const POLL: Duration = Duration::from_millis(10);

/// Whose a volume is if nothing is said.
pub const ROOT: (u32, u32) = (0, 0);

/// What a new volume holds.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// Nothing: its top is of this user and group.
    Empty {
        /// The numbers of both.
        owner: (u32, u32),
    },
    /// A copy of a folder, owners included.
    Folder(&'a Path),
}

/// Makes it.
///
/// Errors: `VolumeExists`, `NoRoom`, `FolderTooLarge`, and what mke2fs says.
pub fn make(
    store: &Store,
    volume: &Volume,
    size: ByteSize,
    content: Content<'_>,
) -> Result<(), Failure> {
    if volume.exists() {
        return Err(exists(volume));
    }
    let content_bytes = check_content(size, content)?;
    store.prepare()?;
    check_room(store, size)?;
    let draft = Draft(store.draft(volume.name()));
    reserve(&draft.0, size)?;
    fill(&draft.0, volume, content, content_bytes)?;
    remove_lost_and_found(&draft.0)?;
    draft.publish(volume)?;
    // The name is kept, too.
    File::open(store.path())
        .and_then(|folder| folder.sync_all())
        .map_err(Failure::file(store.path()))
}

fn exists(volume: &Volume) -> Failure {
    Failure::VolumeExists {
        name: volume.name().to_string(),
    }
}

/// The bytes that are to be copied.
fn check_content(size: ByteSize, content: Content<'_>) -> Result<u64, Failure> {
    let Content::Folder(folder) = content else {
        return Ok(0);
    };
    if !folder.is_dir() {
        return Err(Failure::NoSuchFolder {
            path: folder.into(),
        });
    }
    let bytes = bytes_below(folder)?;
    let needed = bytes + bytes / OWN_SHARE + SMALL_JOURNAL;
    match needed <= size.bytes() {
        true => Ok(bytes),
        false => Err(Failure::FolderTooLarge {
            path: folder.into(),
            takes: told(bytes),
            enough: needed.div_ceil(1 << 20),
        }),
    }
}

/// The bytes of all files below a folder, as blocks hold them; a file with several names counts for each.
fn bytes_below(folder: &Path) -> Result<u64, Failure> {
    const BLOCK: u64 = 4096;
    let mut sum = 0;
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let listing = fs::read_dir(&folder).map_err(Failure::file(&folder))?;
        for entry in listing.flatten() {
            let metadata = entry.metadata().map_err(Failure::file(entry.path()))?;
            sum += BLOCK;
            if metadata.is_dir() {
                folders.push(entry.path());
            } else if metadata.is_file() {
                // A sparse file takes what it holds.
                sum += metadata
                    .size()
                    .min(metadata.blocks() * 512 + BLOCK)
                    .next_multiple_of(BLOCK);
            }
        }
    }
    Ok(sum)
}

/// The image is sparse, but a promise that the host cannot keep is not made.
fn check_room(store: &Store, size: ByteSize) -> Result<(), Failure> {
    let free = free_bytes(store)?;
    match size.bytes() <= free {
        true => Ok(()),
        false => Err(Failure::NoRoom {
            folder: store.path().into(),
            size: size.to_string(),
            free: told(free),
        }),
    }
}

/// What the host's disk has left for the user there.
pub(super) fn free_bytes(store: &Store) -> Result<u64, Failure> {
    let room = rustix::fs::statvfs(store.path())
        .map_err(|error| Failure::file(store.path())(error.into()))?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

/// A file of that size with nothing in it, for its owner only.
fn reserve(path: &Path, size: ByteSize) -> Result<(), Failure> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|file| file.set_len(size.bytes()))
        .map_err(Failure::file(path))
}

/// Runs mke2fs on the file.
fn fill(
    path: &Path,
    volume: &Volume,
    content: Content<'_>,
    content_bytes: u64,
) -> Result<(), Failure> {
    let name = volume.name();
    let label: String = name.as_str().chars().take(LABEL_BYTES).collect();
    let mut command = tools::command("mke2fs")?;
    command.args([
        "-q", "-F", "-t", "ext4", "-b", "4096", "-I", "256", "-m", "0",
    ]);
    command.args(["-O", FEATURES, "-L", &label]);
    match content {
        Content::Empty { owner } => {
            command.args(["-E", &format!("root_owner={}:{}", owner.0, owner.1)])
        }
        Content::Folder(folder) => command.arg("-d").arg(folder),
    };
    command.arg(path);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let child = command.spawn().map_err(Failure::file("mke2fs"))?;
    let mut progress = Progress::new(format!("{name} is filled"), path.into(), content_bytes);
    wait(child, || progress.tell())
}

/// Waits for mke2fs, whose complaints are few.
fn wait(mut child: Child, mut meanwhile: impl FnMut()) -> Result<(), Failure> {
    while child.try_wait().map_err(Failure::file("mke2fs"))?.is_none() {
        meanwhile();
        thread::sleep(POLL);
    }
    let output = child.wait_with_output().map_err(Failure::file("mke2fs"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Failure::ImageTool {
            name: "mke2fs".into(),
            said: tools::last_words(&output.stderr),
        }),
    }
}

/// Databases want an empty folder for their files; e2fsck makes another one when it has found something.
pub(super) fn remove_lost_and_found(path: &Path) -> Result<(), Failure> {
    let mut command = tools::command("debugfs")?;
    command.args(["-w", "-R", "rmdir lost+found"]).arg(path);
    // One that holds something stays, and so may one that is not there.
    command.output().map_err(Failure::file("debugfs")).map(drop)
}

/// An image in the making, removed unless it is published.
struct Draft(PathBuf);

impl Draft {
    /// Gives it the volume's name, which nobody has.
    fn publish(&self, volume: &Volume) -> Result<(), Failure> {
        let file = File::open(&self.0).and_then(|file| file.sync_all());
        file.map_err(Failure::file(&self.0))?;
        fs::hard_link(&self.0, volume.path()).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => exists(volume),
            _ => Failure::file(volume.path())(error),
        })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // What stays is taken away by the next that makes a volume.
        let _ = fs::remove_file(&self.0);
    }
}
