//! The first program of all: process 1, its console, directory and volumes.

use alloc::sync::Arc;
use alloc::vec::Vec;

use ::exec::Arguments;
use kernel_agent::Defaults;
use mach::klog;
use mach::mem::fallible;
use mach::sync::Once;
use mach::trap::UserRegs;
use sync::{Error, Result};
use task::{self, ExitStatus, current, family};
use tty::console;
use vfs::file::StatusFlags;
use vfs::{self, FileSystem, FileType, MountFlags, OpenHow, Walk, kinds, mount, names};

use crate::root::{self, Root};
use crate::settings::Settings;
use crate::{death, links, strace};
use linux_abi::errno::Errno;
use linux_task::start::{Identity, STATUS_NOT_EXECUTABLE, STATUS_NOT_FOUND, find_program};
use linux_task::{exec, leave};

/// What the machine is for.
pub struct First {
    /// The program.
    pub arguments: Arguments,
    /// Where it starts; empty for the root.
    pub directory: Vec<u8>,
    /// Its user and group; root if there is none.
    pub user: Option<(u32, u32)>,
    /// Its further groups.
    pub groups: Vec<u32>,
    /// The capabilities that programs can get: bit n is capability n.
    pub capabilities: u64,
    /// Whether exec grants them none.
    pub gains_nothing: bool,
    /// What is set before it starts.
    pub settings: Settings,
    /// Whether its calls are reported.
    pub is_traced: bool,
    /// What is to be the root; the image is if there is none.
    pub root: Option<Root>,
    /// Files of the image that cover those of the root.
    pub covered: Vec<Vec<u8>>,
    /// Whether programs may not change the root.
    pub is_read_only: bool,
    /// Whether the host wants to know what programs look for in vain.
    pub is_packed: bool,
    /// What is to be mounted before.
    pub volumes: Vec<Volume>,
}

/// What the host gives to be mounted.
pub struct Volume {
    /// Which one.
    pub source: VolumeSource,
    /// Where it is mounted; made if it is not there.
    pub path: Vec<u8>,
    /// Whether programs may not write to it.
    pub is_read_only: bool,
}

/// Where a volume is.
pub enum VolumeSource {
    /// A folder of the host, by the name of its device.
    Folder(Vec<u8>),
    /// The same, where a daemon of the host's serves it.
    Served(Vec<u8>),
    /// A disk or a partition, by the UUID of its ext4 image.
    Disk([u8; 16]),
    /// Nowhere but in memory; with the options of a tmpfs.
    Memory(Vec<u8>),
}

impl First {
    fn identity(&self) -> Identity<'_> {
        Identity {
            user: self.user,
            groups: &self.groups,
            capabilities: self.capabilities,
            gains_nothing: self.gains_nothing,
        }
    }
}

impl VolumeSource {
    /// The file system, and its source as /proc/mounts shows it. With `is_immutable` nobody changes it
    /// meanwhile.
    ///
    /// Errors: `NoSuchDevice`, and what the file system says.
    pub(crate) fn system(&self, is_immutable: bool) -> Result<(Arc<dyn FileSystem>, Vec<u8>)> {
        let (kind, source, options) = match self {
            Self::Folder(tag) if is_immutable => ("9p", tag.clone(), &b"immutable"[..]),
            Self::Folder(tag) => ("9p", tag.clone(), &b""[..]),
            Self::Served(tag) => ("virtiofs", fallible::copied(tag)?, &b""[..]),
            Self::Disk(uuid) => ("ext4", fs_ext4::node_of(uuid)?.into_bytes(), &b""[..]),
            Self::Memory(options) => ("tmpfs", fallible::copied(b"tmpfs")?, &options[..]),
        };
        Ok((kinds::make(kind.as_bytes(), &source, options)?, source))
    }
}

/// What process 1 runs; the thread that becomes it takes no argument.
static FIRST: Once<First> = Once::new();

/// Makes process 1; it starts when the scheduler does.
///
/// Errors: `OutOfMemory`.
pub fn start_init(first: First) -> Result<()> {
    let first = FIRST.call_once(|| first);
    let thread = task::start_init(begin).ok_or(Error::OutOfMemory)?;
    if first.is_traced {
        strace::enable(&thread);
    }
    death::tell_init();
    sched::launch(thread.sched.clone(), thread);
    Ok(())
}

/// The first thing that process 1 does.
fn begin(_: usize) -> ! {
    // The first thread has no registers yet: exec makes them.
    let _ = task::begin_thread();
    match FIRST.get().ok_or(Error::NotFound).and_then(prepare) {
        Ok(mut regs) => {
            start_agent();
            leave::before_user(&current(), &mut regs);
            mach::task::enter_user(&regs)
        }
        Err(error) => {
            let errno = Errno::from(error);
            klog!("cannot run the program error={}", errno.name());
            let is_missing = errno == Errno::ENOENT;
            let status = if is_missing {
                STATUS_NOT_FOUND
            } else {
                STATUS_NOT_EXECUTABLE
            };
            task::exit_thread(ExitStatus::Exited(status))
        }
    }
}

/// The program is there, with its root and its volumes: now others may enter the machine.
fn start_agent() {
    if let Some(first) = FIRST.get() {
        kernel_agent::start(Defaults {
            environment: &first.arguments.environment,
            directory: &first.directory,
            identity: first.identity(),
        });
    }
}

fn prepare(first: &First) -> Result<UserRegs> {
    if let Some(root) = &first.root {
        enter_root(root, &first.covered)?;
    }
    open_console()?;
    kernel_vsa::attach_all();
    for volume in &first.volumes {
        if let Err(error) = mount_volume(volume) {
            klog!(
                "volume {} not mounted: {error:?}",
                volume.path.escape_ascii()
            );
            return Err(error);
        }
    }
    links::restore();
    if first.is_read_only {
        forbid_changes()?;
    }
    if !first.directory.is_empty() {
        let place = vfs::resolve(None, &first.directory, Walk::FOLLOW | Walk::DIRECTORY)?;
        vfs::context().set_cwd(place);
    }
    first.settings.apply()?;
    first.identity().take()?;
    if first.is_packed {
        vfs::absent::watch();
    }
    let mut arguments = first.arguments.clone();
    arguments.path = find_program(&arguments.path, &arguments.environment)?;
    exec::open_and_exec(arguments)
}

fn enter_root(root: &Root, covered: &[Vec<u8>]) -> Result<()> {
    root::enter(root, covered).inspect_err(|error| klog!("the root is not mounted: {error:?}"))
}

/// The root cannot be changed from now on; what is mounted below it can.
fn forbid_changes() -> Result<()> {
    let change = mount::Change {
        set: MountFlags::RDONLY,
        clear: MountFlags::empty(),
        propagation: None,
    };
    mount::change(&vfs::context().root(), change, false)
}

/// Descriptors 0, 1 and 2 are what the host has there.
fn open_console() -> Result<()> {
    console::control_session(family::INIT);
    let how = OpenHow {
        status: StatusFlags::RDWR,
        ..OpenHow::READ
    };
    let open = vfs::open(None, b"/dev/console", &how)?;
    let files = current().files.get();
    let standard = console::standard_files(&open)?;
    let limit = standard.len() as u32;
    for open in standard {
        files.insert(open, false, 0, limit)?;
    }
    Ok(())
}

fn mount_volume(volume: &Volume) -> Result<()> {
    make_directories(&volume.path)?;
    let at = vfs::resolve(None, &volume.path, Walk::FOLLOW | Walk::DIRECTORY)?;
    let (system, source) = volume.source.system(false)?;
    let mut flags = MountFlags::RELATIME;
    flags.set(MountFlags::RDONLY, volume.is_read_only);
    mount::mount(at, system, &source, flags)
}

/// Makes `path` and what is missing above it.
pub(crate) fn make_directories(path: &[u8]) -> Result<()> {
    const MODE: u32 = 0o755;
    for end in (1..=path.len()).filter(|&end| path.get(end).is_none_or(|&byte| byte == b'/')) {
        let Some(part) = path.get(..end) else {
            continue;
        };
        let component = vfs::resolve_parent(None, part, Walk::empty())?;
        match names::create(&component, &names::Wanted::new(FileType::Directory, MODE)) {
            Ok(_) | Err(Error::Exists) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
