//! Shared memory with numbers and keys (shmget(2), shmop(2)).
//!
//! A segment is a memory object; each area that shows it is an attachment. One that is removed
//! stays for those who show it, has no key any more, and goes with the last of them.

use alloc::sync::{Arc, Weak};
use core::any::Any;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};

use base::{PAGE_BYTES, VirtAddr};
use mach::sync::Spin;
use mm::{FaultError, MemoryObject, Object, Page, SharedMemory, Sharing};
use sync::{Error, Result};
use sysv::{GetRequest, Registry};
use task::{Pid, current};

use super::{
    Common, Look, Settings, as_caller, check_mode, check_owner, look_at, now_seconds, refused,
};

/// Segments at most (SHMMNI).
pub const SEGMENTS_MAX: usize = 4096;
/// Bytes of one, and pages of all, at most (SHMMAX, SHMALL).
pub const BYTES_MAX: u64 = u64::MAX - (1 << 24);

enum Held {
    Kept(Arc<Segment>),
    Removed(Weak<Segment>),
}

/// System V's numbers are the machine's: who knows one has the segment.
static SEGMENTS: Spin<Registry<Held>> = Spin::new(Registry::new(SEGMENTS_MAX));
/// Pages of all segments, which are limited together (`shmall`).
static PAGES: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy, Default)]
struct Times {
    attached: i64,
    detached: i64,
    changed: i64,
    last: Pid,
}

/// One segment.
pub struct Segment {
    memory: SharedMemory,
    bytes: u64,
    shown: AtomicUsize,
    number: AtomicU32,
    creator: Pid,
    times: Spin<Times>,
}

/// What tools see of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// What all kinds have.
    pub common: Common,
    /// Its length.
    pub bytes: u64,
    /// When it was attached last, in seconds since 1970, or 0.
    pub attached: i64,
    /// When it was detached last, or 0.
    pub detached: i64,
    /// When it was made or changed.
    pub changed: i64,
    /// Who made it.
    pub creator: Pid,
    /// Who attached or detached it last.
    pub last: Pid,
    /// How often it is attached.
    pub attachments: usize,
    /// It goes with the last attachment.
    pub is_removed: bool,
}

impl Segment {
    fn new(bytes: u64, is_reserved: bool) -> Result<Arc<Self>> {
        let memory = match is_reserved {
            true => SharedMemory::new(bytes)?,
            false => SharedMemory::sparse(bytes),
        };
        PAGES.fetch_add(bytes.div_ceil(PAGE_BYTES as u64), SeqCst);
        let times = Times {
            changed: now_seconds(),
            ..Times::default()
        };
        Ok(Arc::new(Self {
            memory,
            bytes,
            shown: AtomicUsize::new(0),
            number: AtomicU32::new(u32::MAX),
            creator: current().process.id(),
            times: Spin::new(times),
        }))
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        PAGES.fetch_sub(self.bytes.div_ceil(PAGE_BYTES as u64), SeqCst);
        let gone = SEGMENTS.lock().remove(*self.number.get_mut());
        drop(gone);
    }
}

impl MemoryObject for Segment {
    fn page(&self, index: u64, sharing: Sharing) -> core::result::Result<Page, FaultError> {
        self.memory.page(index, sharing)
    }

    fn ready_page(&self, index: u64, sharing: Sharing) -> Option<Page> {
        self.memory.ready_page(index, sharing)
    }

    fn size(&self) -> u64 {
        self.memory.size()
    }

    fn shown(&self) -> Option<&AtomicUsize> {
        Some(&self.shown)
    }

    fn label(&self) -> &'static str {
        "/SYSV (deleted)"
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// The segment of that key, or a new one of `bytes` bytes.
pub fn get(request: GetRequest, bytes: u64, is_reserved: bool) -> Result<u32> {
    if let Some(number) = find(request, bytes)? {
        return Ok(number);
    }
    if bytes == 0 || bytes > BYTES_MAX {
        return Err(Error::Invalid);
    }
    let segment = Segment::new(bytes, is_reserved)?;
    let mut segments = SEGMENTS.lock();
    // Another program may have made it meanwhile.
    let found = as_caller(|caller| segments.find(request, caller)).map_err(refused)?;
    if let Some(number) = found {
        drop(segments);
        return Ok(number);
    }
    let held = Held::Kept(segment.clone());
    let made = as_caller(|caller| segments.insert(request, caller, held));
    if let Ok(number) = made {
        segment.number.store(number, SeqCst);
    }
    drop(segments);
    made.map_err(refused)
}

fn find(request: GetRequest, bytes: u64) -> Result<Option<u32>> {
    let segments = SEGMENTS.lock();
    let Some(number) = as_caller(|caller| segments.find(request, caller)).map_err(refused)? else {
        return Ok(None);
    };
    match &segments.get(number).map_err(refused)?.object {
        Held::Kept(segment) if bytes <= segment.bytes => Ok(Some(number)),
        _ => Err(Error::Invalid),
    }
}

fn hold(held: &Held) -> Result<Arc<Segment>> {
    match held {
        Held::Kept(segment) => Ok(segment.clone()),
        Held::Removed(segment) => segment.upgrade().ok_or(Error::Invalid),
    }
}

/// The segment, for somebody who wants to attach it: to store to it, too, if `may_store`.
pub fn attach(number: u32, may_store: bool) -> Result<Arc<Segment>> {
    let segment = {
        let segments = SEGMENTS.lock();
        let entry = segments.get(number).map_err(refused)?;
        check_mode(entry, if may_store { 6 } else { 4 })?;
        hold(&entry.object)?
    };
    note(&segment, |times| &mut times.attached);
    Ok(segment)
}

fn note(segment: &Segment, which: impl Fn(&mut Times) -> &mut i64) {
    let mut times = segment.times.lock();
    *which(&mut times) = now_seconds();
    times.last = current().process.id();
}

/// Detaches the segment whose first byte is at `at`.
pub fn detach(at: VirtAddr) -> Result<()> {
    let is_segment = |object: &Object| segment_of(object).is_some();
    let space = current().process.space.get();
    let object = space.unmap_object(at, &is_segment)?;
    if let Some(segment) = segment_of(&object) {
        note(segment, |times| &mut times.detached);
    }
    Ok(())
}

fn segment_of(object: &Object) -> Option<&Segment> {
    object.memory.as_any()?.downcast_ref()
}

/// What is known of a segment.
pub fn look(look: Look) -> Result<Facts> {
    let (common, segment, is_removed) = {
        let segments = SEGMENTS.lock();
        let (number, entry) = look_at(&segments, look)?;
        let is_removed = matches!(entry.object, Held::Removed(_));
        (
            super::common(number, entry),
            hold(&entry.object)?,
            is_removed,
        )
    };
    let times = *segment.times.lock();
    Ok(Facts {
        common,
        bytes: segment.bytes,
        attached: times.attached,
        detached: times.detached,
        changed: times.changed,
        creator: segment.creator,
        last: times.last,
        attachments: segment.shown.load(SeqCst),
        is_removed,
    })
}

/// Changes owner and permissions.
pub fn set(number: u32, settings: Settings) -> Result<()> {
    let segment = {
        let mut segments = SEGMENTS.lock();
        super::set(&mut segments, number, settings)?;
        hold(&segments.get(number).map_err(refused)?.object)?
    };
    segment.times.lock().changed = now_seconds();
    Ok(())
}

/// Fails unless the caller may keep the segment in memory, or let it go.
pub fn check_lock(number: u32) -> Result<()> {
    check_owner(&SEGMENTS.lock(), number)
}

/// Removes a segment: it goes with its last attachment.
pub fn remove(number: u32) -> Result<()> {
    let kept = {
        let mut segments = SEGMENTS.lock();
        check_owner(&segments, number)?;
        let entry = segments.get_mut(number).map_err(refused)?;
        let Held::Kept(segment) = &entry.object else {
            return Ok(());
        };
        let removed = Held::Removed(Arc::downgrade(segment));
        entry.key = 0;
        core::mem::replace(&mut entry.object, removed)
    };
    // If nobody shows it, it goes now, and takes its number with it.
    drop(kept);
    Ok(())
}

/// Segments, the highest place, and their pages together.
pub fn totals() -> (usize, usize, u64) {
    let segments = SEGMENTS.lock();
    (segments.len(), segments.highest(), PAGES.load(SeqCst))
}
