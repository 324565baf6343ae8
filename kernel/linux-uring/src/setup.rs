//! io_uring_setup.

use base::VirtAddr;
use kernel_uring::{Ring, RingFile, Setup};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_raw_sys::general::{__NR_io_uring_setup, O_CLOEXEC};
use linux_raw_sys::io_uring::*;
use mach::mem::fallible;
use mm::user;
use uring::{Geometry, offset};
use vfs::file::StatusFlags;

use crate::operation::Linux;

/// The calls of this family.
pub const CALLS: &[Entry] = &[Entry {
    number: __NR_io_uring_setup,
    name: "io_uring_setup",
    args: &[Arg::Int, Arg::Address],
    handler: setup,
}];

/// Words of a `struct io_uring_params`.
const WORDS: usize = 30;
type Params = [u32; WORDS];

/// What a ring may be asked for. All of them are so, or change nothing here: a request is done by
/// its submitter anyway.
const KNOWN: u32 = IORING_SETUP_CQSIZE
    | IORING_SETUP_CLAMP
    | IORING_SETUP_R_DISABLED
    | IORING_SETUP_SUBMIT_ALL
    | IORING_SETUP_COOP_TASKRUN
    | IORING_SETUP_TASKRUN_FLAG
    | IORING_SETUP_SINGLE_ISSUER;

const FEATURES: u32 = IORING_FEAT_SINGLE_MMAP
    | IORING_FEAT_NODROP
    | IORING_FEAT_SUBMIT_STABLE
    | IORING_FEAT_RW_CUR_POS
    | IORING_FEAT_FAST_POLL
    | IORING_FEAT_POLL_32BITS
    | IORING_FEAT_EXT_ARG
    | IORING_FEAT_NATIVE_WORKERS
    | IORING_FEAT_CQE_SKIP
    | IORING_FEAT_LINKED_FILE;

fn setup(call: Call<'_>) -> Outcome {
    let mut params: Params = user::read(call.addr(1))?;
    let [_, completions, flags, _, _, _, _, reserved @ ..] = params;
    let [first, second, third, ..] = reserved;
    if (first | second | third) != 0 || flags & !KNOWN != 0 {
        return Err(Errno::EINVAL);
    }
    if flags & IORING_SETUP_TASKRUN_FLAG != 0 && flags & IORING_SETUP_COOP_TASKRUN == 0 {
        return Err(Errno::EINVAL);
    }
    let completions = (flags & IORING_SETUP_CQSIZE != 0).then_some(completions);
    let clamp = flags & IORING_SETUP_CLAMP != 0;
    let geometry = Geometry::check(call.uint(0), completions, clamp).map_err(|_| Errno::EINVAL)?;
    let setup = Setup {
        geometry,
        submits_all: flags & IORING_SETUP_SUBMIT_ALL != 0,
        is_disabled: flags & IORING_SETUP_R_DISABLED != 0,
    };
    tell(&mut params, &geometry);
    let ring = Ring::new(setup, &Linux)?;
    let file = fallible::arc(RingFile(ring)).map_err(|_| Errno::ENOMEM)?;
    user::write(VirtAddr(call.arg(1)), params)?;
    Ok(call.open_fd(file, StatusFlags::RDWR, O_CLOEXEC)?)
}

/// Says where what lies.
fn tell(params: &mut Params, geometry: &Geometry) {
    let submissions = [
        offset::SQ_HEAD,
        offset::SQ_TAIL,
        offset::SQ_MASK,
        offset::SQ_ENTRIES,
        offset::SQ_FLAGS,
        offset::SQ_DROPPED,
        geometry.array(),
        0,
        0,
        0,
    ];
    let completions = [
        offset::CQ_HEAD,
        offset::CQ_TAIL,
        offset::CQ_MASK,
        offset::CQ_ENTRIES,
        offset::CQ_OVERFLOW,
        offset::CQES,
        offset::CQ_FLAGS,
        0,
        0,
        0,
    ];
    let [
        sq_entries,
        cq_entries,
        _,
        _,
        _,
        features,
        _,
        _,
        _,
        _,
        offsets @ ..,
    ] = params;
    *sq_entries = geometry.sq_entries();
    *cq_entries = geometry.cq_entries();
    *features = FEATURES;
    for (to, from) in offsets
        .iter_mut()
        .zip(submissions.iter().chain(&completions))
    {
        *to = *from as u32;
    }
}
