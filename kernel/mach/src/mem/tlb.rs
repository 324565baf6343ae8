//! Which CPU translates by which table, and making CPUs forget.
//!
//! The problem: a CPU remembers translations (TLB) after the table has changed, and must
//! forget them before the memory is reused. Interrupting another CPU costs
//! microseconds, so the aim is to interrupt none.
//!
//! The idea: each CPU publishes the root that it has loaded. A CPU that changed a table
//! asks only CPUs that have that root, and not the ones that rest (are halted): it leaves
//! them a note, and they forget everything when they wake. A request lies in the
//! initiator's slot until every target has cleared its bit; waiting CPUs serve the
//! requests of others ([`crate::cpu::relax`]), so two initiators can not block each other.
//! A range of few pages is forgotten page by page, more at once. A new mapping is
//! never announced: the processor does not remember absent entries.
//!
//! Why no flush is missed, all these steps being sequentially consistent: a CPU that loads
//! a root publishes it first, so either the initiator sees the root, or the load comes after
//! the change of the table. An initiator that sees a CPU rest leaves the note, then
//! looks again; a CPU that wakes first ends its rest, then looks for the note. So
//! either the initiator sees that the rest is over, or the CPU sees the note.

use core::ops::Range;
use core::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};

use base::{CpuId, PAGE_BYTES, PAGE_SHIFT};
use frames::FrameNo;

use super::kernel_map::kernel_root;
use super::ram::bit;
use crate::cpu::{self, MAX_CPUS};

/// Pages up to which a range is forgotten one by one.
const PAGE_BY_PAGE_MAX: u64 = 32;
/// `Request::first` of a request to leave the root altogether.
const LEAVE: u64 = u64::MAX;

/// One page table to the TLBs: what CR3 holds while it is loaded.
#[derive(Debug)]
pub(super) struct SpaceId {
    root: u64,
}

impl SpaceId {
    pub fn new(root: FrameNo) -> Self {
        Self {
            root: root << PAGE_SHIFT,
        }
    }
}

struct Request {
    root: AtomicU64,
    /// First page to forget, or [`LEAVE`].
    first: AtomicU64,
    /// Pages to forget; more than [`PAGE_BY_PAGE_MAX`] means all.
    pages: AtomicU64,
    /// CPUs that have not served it.
    waiting: AtomicU32,
}

#[repr(align(64))]
struct PerCpuState {
    /// The root in CR3.
    loaded: AtomicU64,
    /// The TLB is stale: the CPU was not asked to forget because it rested.
    stale: AtomicBool,
    /// There may be a request for this CPU.
    mail: AtomicU32,
    request: Request,
}

impl PerCpuState {
    const fn new() -> Self {
        let request = Request {
            root: AtomicU64::new(0),
            first: AtomicU64::new(0),
            pages: AtomicU64::new(0),
            waiting: AtomicU32::new(0),
        };
        let (loaded, mail) = (AtomicU64::new(0), AtomicU32::new(0));
        Self {
            loaded,
            stale: AtomicBool::new(false),
            mail,
            request,
        }
    }
}

static STATES: [PerCpuState; MAX_CPUS] = [const { PerCpuState::new() }; MAX_CPUS];
/// CPUs that rest: they touch no user address until they wake.
static RESTING: AtomicU32 = AtomicU32::new(0);

#[inline(always)]
fn mine() -> &'static PerCpuState {
    &STATES[cpu::id().index()]
}

/// The CPU goes to rest.
#[inline]
pub(crate) fn rest() {
    RESTING.fetch_or(bit(cpu::id()), SeqCst);
}

/// The CPU's rest is over.
#[inline]
pub(crate) fn wake() {
    RESTING.fetch_and(!bit(cpu::id()), SeqCst);
    if mine().stale.swap(false, SeqCst) {
        reload();
    }
}

/// Loads a table, unless it is loaded already.
#[inline]
pub(super) fn activate(space: &SpaceId) {
    let state = mine();
    if state.loaded.load(Relaxed) != space.root {
        load(state, space.root);
    }
}

/// Leaves the user half of whatever table is loaded.
pub fn enter_kernel_table() {
    load(mine(), kernel_root());
}

fn load(state: &PerCpuState, root: u64) {
    state.loaded.store(root, SeqCst);
    fence(SeqCst);
    // SAFETY: **Shared half**: every root maps the kernel alike; `evict` keeps the root
    // from being given back while it is loaded.
    unsafe { arch::instr::write_cr3(root) }
}

fn reload() {
    let root = arch::instr::read_cr3();
    // SAFETY: it is loaded already; writing it again only forgets translations.
    unsafe { arch::instr::write_cr3(root) }
}

/// Makes every CPU forget `changed`, addresses of pages in `space`.
pub(super) fn flush(space: &SpaceId, changed: Range<u64>) {
    fence(SeqCst);
    let pages = (changed.end - changed.start) / PAGE_BYTES as u64;
    if mine().loaded.load(Relaxed) == space.root {
        forget(changed.start, pages);
    }
    let targets = users(space.root, leave_note);
    if targets != 0 {
        request(space.root, changed.start, pages, targets);
    }
}

/// Leaves a note to a CPU that rests; false if it does not.
fn leave_note(id: CpuId) -> bool {
    let rests = || RESTING.load(SeqCst) & bit(id) != 0;
    if !rests() {
        return false;
    }
    STATES[id.index()].stale.store(true, SeqCst);
    rests()
}

/// Takes the table off every CPU, resting ones too, before its root is given back.
pub(super) fn evict(space: &SpaceId) {
    if mine().loaded.load(Relaxed) == space.root {
        enter_kernel_table();
    }
    let targets = users(space.root, |_| false);
    if targets != 0 {
        request(space.root, LEAVE, 0, targets);
    }
}

/// Other CPUs that have `root` loaded, without those for which `spared` holds.
fn users(root: u64, spared: fn(CpuId) -> bool) -> u32 {
    let count = cpu::count().min(MAX_CPUS);
    let has_root = |&id: &CpuId| STATES[id.index()].loaded.load(SeqCst) == root;
    let others = (0..count as u32).map(CpuId).filter(|&id| id != cpu::id());
    let users = others.filter(has_root).filter(|&id| !spared(id));
    users.fold(0, |set, id| set | bit(id))
}

fn request(root: u64, first: u64, pages: u64, targets: u32) {
    let request = &mine().request;
    request.root.store(root, Relaxed);
    request.first.store(first, Relaxed);
    request.pages.store(pages, Relaxed);
    request.waiting.store(targets, SeqCst);
    for id in (0..MAX_CPUS as u32)
        .map(CpuId)
        .filter(|&id| targets & bit(id) != 0)
    {
        STATES[id.index()].mail.store(1, SeqCst);
        cpu::request_service(id);
    }
    while request.waiting.load(Acquire) != 0 {
        cpu::relax();
    }
}

/// Serves what other CPUs ask of this one. Takes no lock; cheap when there is nothing.
#[inline]
pub(super) fn serve() {
    if mine().mail.load(Relaxed) != 0 {
        serve_all();
    }
}

#[cold]
fn serve_all() {
    let (me, state) = (bit(cpu::id()), mine());
    state.mail.swap(0, SeqCst);
    for other in &STATES {
        let request = &other.request;
        if request.waiting.load(SeqCst) & me == 0 {
            continue;
        }
        if request.root.load(Relaxed) == state.loaded.load(Relaxed) {
            carry_out(request);
        }
        request.waiting.fetch_and(!me, Release);
    }
}

fn carry_out(request: &Request) {
    match request.first.load(Relaxed) {
        LEAVE => enter_kernel_table(),
        first => forget(first, request.pages.load(Relaxed)),
    }
}

fn forget(first: u64, pages: u64) {
    if pages > PAGE_BY_PAGE_MAX {
        return reload();
    }
    (0..pages).for_each(|page| arch::instr::invlpg(first + page * PAGE_BYTES as u64));
}
