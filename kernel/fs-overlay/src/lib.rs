//! A writable layer over trees that stay as they are: overlayfs.
//!
//! The problem: the root of a machine is an image that many machines share, or a folder of the host that is
//! not ours, and programs write to their root all the same.
//!
//! The idea: a tree is made of *layers*. The lower ones are only read; what programs change is in the *upper*
//! one. A name means what the topmost layer that has it says; directories of the same name are *merged*. Before a
//! file of a lower layer changes it is *copied up*. A name that was removed although a lower layer has
//! it is a *white-out* in the upper layer, a character device with the number 0; a directory that hides those
//! below is *opaque*: it holds a white-out called [`layers::OPAQUE`]. So every file system that has device nodes can
//! be an upper layer, extended attributes or not.
//!
//! | file | what |
//! |---|---|
//! | `overlay` | the mounted system: its layers, its known inodes, white-outs |
//! | `layers` | what a name means in several directories |
//! | `node` | an inode: the files of the layers that it stands for |
//! | `file` | its bytes |
//! | `copy_up` | from a lower layer to the upper one |
//! | `changes` | names that come, go and move |
//! | `listing`, `cursor` | the names of several directories as one list, and where it goes on |
//! | `options` | mount(2) |
//!
//! Reading and mapping go to the layer's own file, whose pages ten machines' worth of programs share; an open
//! file reads from the copy as soon as there is one, as in Linux since 4.19, while what was mapped before stays the
//! lower file's. `st_dev` and `st_ino` of a file are the same before and after its copy as long as somebody has it
//! open. A directory of a lower layer is not renamed (`CrossDevice`, as Linux without `redirect_dir`: programs
//! copy then), and a hard link between files of a lower layer breaks with the first change.
//!
//! Invariants: a name that only lower layers have is free in the upper directory; lower layers never change (what
//! they said once is believed for ever). What is half made is in the work directory, and one
//! rename puts it in its place; leftovers go when the upper layer is mounted next.
//!
//! Lock order: the directories' locks of `vfs`, a node's `copying`, the overlay's `changing`, then spin locks, under
//! which no layer is asked.
//!
//! Not here: `redirect_dir`, `metacopy`, `index`, numbers of inodes that survive the cache of names.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod changes;
mod copy_up;
mod cursor;
mod file;
mod layers;
mod listing;
mod node;
mod options;
mod overlay;

pub use options::init;
pub use overlay::over;
