//! Running a program: from a file to the first instruction (execve(2)).
//!
//! The new address space is built aside, so that anything wrong with the file is an error
//! for the caller. Then comes the point of no return: the other threads end, the
//! old memory goes, and what fails from there on kills the process.
//!
//! Not here: finding the file and reading arguments from the old program
//! (`kernel/linux`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod elf;
mod load;
mod script;
mod stack;

pub use stack::auxv;

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use base::{PAGE_BYTES, VirtAddr};
use cred::{Credentials, Resource};
use mach::mem::fallible;
use mach::sync::Once;
use mm::user;
use mm::{AddressSpace, FixedPages, Layout, Mapping, Object, Place, Rights, release};
use sync::{Error, Result};
use task::ptrace;
use task::signal::Signal;
use task::{
    ExitStatus, Image, LockRelease, Name, Thread, become_only_thread, current, forget_program,
    release_locks,
};

use self::elf::{PROGRAM_HEADER_BYTES, Program};
use self::load::Loaded;
use self::script::FIRST_BYTES;
use self::stack::Stack;
use vfs::access::{READ, Subject, Who};
use vfs::file::OpenFile;
use vfs::{self, MountFlags, Walk};

/// Scripts that are read by scripts (Linux's BINPRM_MAX_RECURSION).
const SCRIPTS_MAX: usize = 5;
/// The part of the stack's limit that arguments may take.
const ARGUMENTS_PART: u64 = 4;
/// The most that arguments may take in any case.
const ARGUMENTS_BYTES_MAX: u64 = 6 << 20;
/// What arguments may take in any case (Linux's ARG_MAX guarantee).
const ARGUMENTS_BYTES_MIN: u64 = 128 << 10;
/// Stack that is mapped below the arguments; it grows on demand.
const STACK_BYTES: u64 = 128 << 10;
/// Ticks per second of `clock_t`.
const CLOCK_TICKS: u64 = 100;

const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o010;

/// What a program is started with.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// The path by which it was asked for.
    pub path: Vec<u8>,
    /// Its arguments, its own name first.
    pub values: Vec<Vec<u8>>,
    /// Its environment.
    pub environment: Vec<Vec<u8>>,
}

impl Arguments {
    /// Bytes on the stack: strings and pointers to them.
    fn bytes(&self) -> u64 {
        let strings = self
            .values
            .iter()
            .chain(&self.environment)
            .chain([&self.path]);
        strings.map(|string| string.len() as u64 + 1 + 8).sum()
    }
}

/// The most that arguments and environment of a new program may take, in bytes.
pub fn arguments_bytes_max() -> u64 {
    let limit = current().process.limits.soft(Resource::StackBytes);
    (limit / ARGUMENTS_PART).clamp(ARGUMENTS_BYTES_MIN, ARGUMENTS_BYTES_MAX)
}

/// Where a new program starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// Its first instruction.
    pub entry: u64,
    /// Its stack pointer.
    pub stack: u64,
}

/// Replaces the current program by the one in `open`. `abi` are entries of the auxiliary
/// vector that depend on the ABI's own structures.
///
/// Errors: those of the file; then nothing has changed. `Interrupted` if the process ends
/// instead.
pub fn exec(open: Arc<OpenFile>, arguments: Arguments, abi: &[(u64, u64)]) -> Result<Start> {
    let (open, first, arguments) = follow_scripts(open, arguments)?;
    if arguments.bytes() > arguments_bytes_max() {
        return Err(Error::ArgumentsTooLong);
    }
    let me = current();
    me.check_program_limit()?;
    let who = credentials_for(&me, &open)?;
    let prepared = prepare(&open, &first, &me, &who)?;
    become_only_thread()?;
    let start = replace(&me, prepared, open, &arguments, abi, who);
    start.inspect_err(|_| me.process.begin_exit(ExitStatus::Killed(Signal::SEGV)))
}

type FirstBytes = Vec<u8>;

/// While the file is a script, goes on with its interpreter.
fn follow_scripts(
    mut open: Arc<OpenFile>,
    mut arguments: Arguments,
) -> Result<(Arc<OpenFile>, FirstBytes, Arguments)> {
    for _ in 0..=SCRIPTS_MAX {
        let mut first = vec![0; FIRST_BYTES];
        let len = load::read(&open, 0, &mut first)?;
        first.truncate(len);
        let Some(script) = script::parse(&first)? else {
            return Ok((open, first, arguments));
        };
        open = vfs::open_for_exec(None, script.interpreter, Walk::FOLLOW)?;
        let mut values = fallible::vec(arguments.values.len() + 2)?;
        values.push(script.interpreter.to_vec());
        values.extend(script.argument.map(<[u8]>::to_vec));
        values.push(arguments.path);
        values.extend(arguments.values.into_iter().skip(1));
        arguments = Arguments {
            path: script.interpreter.to_vec(),
            values,
            environment: arguments.environment,
        };
    }
    Err(Error::TooManySymlinks)
}

/// The credentials of the new program; set-id bits count unless the mount or the program
/// before has said otherwise.
fn credentials_for(me: &Thread, open: &OpenFile) -> Result<Credentials> {
    let mut who = Credentials::clone(&me.credentials.get());
    let nosuid = open
        .path
        .as_ref()
        .is_some_and(|path| path.mount.has(MountFlags::NOSUID));
    let forbidden = me.no_new_privileges.load(Ordering::Relaxed);
    if !nosuid && !forbidden && !ptrace::forbids_rights(me) {
        let file = open.metadata()?;
        if file.mode & SET_UID != 0 {
            who.user.effective = file.uid;
        }
        if file.mode & SET_GID != 0 && file.mode & GROUP_EXECUTE != 0 {
            who.group.effective = file.gid;
        }
    }
    Ok(who.for_new_program())
}

/// A program in an address space of its own, not yet running.
struct Prepared {
    space: Arc<AddressSpace>,
    program: Program,
    main: Loaded,
    interpreter: Option<Loaded>,
    vdso: Option<u64>,
    secure: bool,
    dumpable: bool,
}

fn prepare(open: &Arc<OpenFile>, first: &[u8], me: &Thread, who: &Credentials) -> Result<Prepared> {
    let program = load::read_program(open, first)?;
    let limit = me.process.limits.soft(Resource::StackBytes);
    let gains_rights = me.credentials.with(|old| who.differs_in_rights(old));
    let layout = match me.personality.randomizes(gains_rights) {
        true => Layout::random(core::array::from_fn(|_| random::next_u64()), limit),
        false => Layout::random([0; 4], limit),
    };
    let space = AddressSpace::new(layout)?;
    space.allow_large_pages(me.process.space.with(|old| old.allows_large_pages()));
    let main = load::map(&space, open, &program, Some(layout.program))?;
    let mut dumpable = is_readable(open)? && !gains_rights;
    let interpreter = match load::read_interpreter(open, &program)? {
        Some(path) => {
            let file = vfs::open_for_exec(None, &path, Walk::FOLLOW)?;
            dumpable &= is_readable(&file)?;
            Some(load_interpreter(&space, &file)?)
        }
        None => None,
    };
    space.start_heap(VirtAddr(main.end + layout.heap_gap));
    let vdso = map_vdso(&space)?;
    let secure = who.user.real != who.user.effective || who.group.real != who.group.effective;
    Ok(Prepared {
        space,
        program,
        main,
        interpreter,
        vdso,
        secure,
        dumpable: dumpable && !secure,
    })
}

/// Whether its user may read the program: one that may only be run is not to be looked into.
fn is_readable(open: &OpenFile) -> Result<bool> {
    let file = open.metadata()?;
    Ok(Subject::current(Who::Effective).check(&file, READ).is_ok())
}

fn load_interpreter(space: &AddressSpace, open: &Arc<OpenFile>) -> Result<Loaded> {
    let mut first = vec![0; FIRST_BYTES];
    let len = load::read(open, 0, &mut first)?;
    first.truncate(len);
    let program = load::read_program(open, &first)?;
    load::map(space, open, &program, None)
}

/// Maps the clock's data and right behind it the code that reads it; the address of the
/// code.
fn map_vdso(space: &AddressSpace) -> Result<Option<u64>> {
    /// The same pages in all programs, for there is one clock.
    static OBJECT: Once<Option<Object>> = Once::new();
    let object = OBJECT.call_once(|| {
        let pages = vec![mach::vdso::data_page()?, mach::vdso::code_page()?];
        let memory = Arc::new(FixedPages::new("[vdso]", pages));
        Some(Object::new(memory, None))
    });
    let Some(object) = object else {
        return Ok(None);
    };
    let page = PAGE_BYTES as u64;
    let read = Rights {
        read: true,
        ..Rights::NONE
    };
    let code = Rights { exec: true, ..read };
    let mut mapping = Mapping::anonymous(Place::Hint(VirtAddr(0)), 2 * page, read);
    mapping.object = Some((object.clone(), 0));
    mapping.limit = code;
    let at = space.map(mapping)? + page;
    space.protect(at, page, code)?;
    Ok(Some(at.0))
}

/// The point of no return is behind: what the old program had goes, the new one comes.
fn replace(
    me: &Thread,
    prepared: Prepared,
    open: Arc<OpenFile>,
    arguments: &Arguments,
    abi: &[(u64, u64)],
    who: Credentials,
) -> Result<Start> {
    // Nobody may look into the new program by what the old one allowed.
    me.process.dumpable.store(false, Ordering::Relaxed);
    // Who attached since the rights were looked at would get them.
    if me.credentials.with(|old| who.differs_in_rights(old)) && ptrace::forbids_rights(me) {
        return Err(Error::NotPermitted);
    }
    release_locks(me, LockRelease::Program);
    let old = me.process.space.replace(prepared.space.clone());
    me.process.mappings_told_ns.store(0, Ordering::Relaxed);
    me.activate_space();
    release(old);
    forget_program(me);
    me.personality
        .start_program(me.credentials.with(|old| who.differs_in_rights(old)));
    me.take_credentials(who);
    me.process
        .dumpable
        .store(prepared.dumpable, Ordering::Relaxed);
    close_files(me)?;
    *me.name.lock() = name_of(&arguments.path);
    let stack = write_stack(me, &prepared, arguments, abi)?;
    for loaded in [Some(prepared.main), prepared.interpreter]
        .into_iter()
        .flatten()
    {
        for (at, len) in loaded.tail {
            user::fill(VirtAddr(at), 0, len as usize)?;
        }
    }
    let old = core::mem::replace(
        &mut *me.process.image.lock(),
        Image {
            executable: Some(open),
            arguments: stack.arguments,
            environment: stack.environment,
            stack_start: stack.pointer,
            auxv: stack.auxv.into(),
        },
    );
    drop(old);
    me.sched.context.set_fs_base(0);
    me.sched.context.set_gs_base(0);
    mach::task::fpu_reset();
    perf::note_exec(me);
    let entry = prepared
        .interpreter
        .map_or(prepared.main.entry, |loaded| loaded.entry);
    Ok(Start {
        entry,
        stack: stack.pointer,
    })
}

/// The table of descriptors becomes the program's own, without what exec closes.
fn close_files(me: &Thread) -> Result<()> {
    let files = me.files.get();
    if Arc::strong_count(&files) > 2 {
        drop(me.files.replace(Arc::new(files.fork()?)));
    }
    drop(files);
    me.files.get().close_on_exec_now();
    Ok(())
}

/// The last part of the path, as far as it fits.
fn name_of(path: &[u8]) -> Name {
    let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let mut name = Name::default();
    for (place, &byte) in name.iter_mut().take(15).zip(last) {
        *place = byte;
    }
    name
}

fn write_stack(
    me: &Thread,
    prepared: &Prepared,
    arguments: &Arguments,
    abi: &[(u64, u64)],
) -> Result<Stack> {
    let auxv = auxiliary(me, prepared, abi);
    let top = prepared.space.layout().stack_top.0;
    let random = [random::next_u64(), random::next_u64()];
    let stack = stack::build(top, arguments, random, &auxv)?;
    let low = VirtAddr(stack.pointer - STACK_BYTES).page_floor();
    let rights = Rights {
        exec: prepared.program.executable_stack,
        ..Rights::READ_WRITE
    };
    let mut mapping = Mapping::anonymous(Place::Fixed(low), top - low.0, rights);
    mapping.traits.grows_down = true;
    prepared.space.map(mapping)?;
    user::copy_out(&stack.bytes, VirtAddr(stack.pointer))?;
    Ok(stack)
}

/// The entries that do not point into the stack.
fn auxiliary(me: &Thread, prepared: &Prepared, abi: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let who = me.credentials.get();
    let main = &prepared.main;
    let table = prepared.program.table_address;
    let mut auxv = Vec::new();
    auxv.extend(prepared.vdso.map(|at| (auxv::SYSINFO_EHDR, at)));
    auxv.extend_from_slice(abi);
    auxv.extend([
        (auxv::PAGESZ, PAGE_BYTES as u64),
        (auxv::CLKTCK, CLOCK_TICKS),
        (
            auxv::PHDR,
            if table == 0 {
                0
            } else {
                table.wrapping_add(main.bias)
            },
        ),
        (auxv::PHENT, PROGRAM_HEADER_BYTES as u64),
        (auxv::PHNUM, prepared.program.header.table_len as u64),
        (
            auxv::BASE,
            prepared.interpreter.map_or(0, |loaded| loaded.bias),
        ),
        (auxv::FLAGS, 0),
        (auxv::ENTRY, main.entry),
        (auxv::UID, u64::from(who.user.real)),
        (auxv::EUID, u64::from(who.user.effective)),
        (auxv::GID, u64::from(who.group.real)),
        (auxv::EGID, u64::from(who.group.effective)),
        (auxv::SECURE, u64::from(prepared.secure)),
    ]);
    auxv
}
