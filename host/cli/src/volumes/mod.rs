//! Volumes: disks with a name, which outlive the machines that use them (`-v NAME:/data`).
//!
//! A volume is one sparse file `NAME.img` in the user's folder of volumes: an ext4 file system, made
//! and checked by e2fsprogs, which need no root for that. So what a machine leaves there can be read by
//! any Linux.
//!
//! Invariants
//! - **Whole**: a file called `NAME.img` is a finished image. It is made under another name, which
//!   tells who makes it, and gets its own by one link(2) that replaces nothing.
//! - **Alone**: who changes a volume holds its file locked (flock(2)), who only reads it holds it
//!   locked together with other readers. QEMU inherits the lock, so it lasts as long as the last of
//!   both, the command and QEMU. A lock counts only if the file still has the volume's name afterwards.
//!
//! A machine finds a volume by the UUID in its superblock, never by the order of its disks.
//!
//! | file | what |
//! |---|---|
//! | `store` | the folder: which volumes there are |
//! | `lock` | who may use one |
//! | `make`, `progress` | new ones, empty or filled from a folder |
//! | `check` | e2fsck |
//! | `attach` | volumes as disks of a machine |
//! | `tools` | e2fsprogs |

mod attach;
mod check;
mod lock;
mod make;
mod progress;
mod store;
pub mod tools;

pub use attach::{Attached, attach};
pub(crate) use attach::{make_default, named, uuid_text};
pub use check::{Repair, check};
pub use lock::{Access, Lock};
pub use make::{Content, ROOT, make};
pub use store::{Store, Volume};
