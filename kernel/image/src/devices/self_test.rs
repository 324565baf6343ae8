//! `dma.self_test=1` on the command line: asks this machine for memory of every kind and
//! looks at what comes. It ends with a request that no memory meets, and reports that
//! refusal, so that the host sees that it ran and how far it came.

use base::{DeviceAddr, PAGE_BYTES};
use hal::caching::{MemoryType, Uncached, WriteBack, WriteCombining};
use hal::{DmaBuf, DmaError, DmaRequest, DmaSource};
use mach::klog;
use mach::mem::DmaMemory;

use crate::options;

const SIZES: [usize; 4] = [64, PAGE_BYTES, 5 * PAGE_BYTES + 8, 64 << 10];
const ALIGNMENTS: [usize; 3] = [64, PAGE_BYTES, 128 << 10];
const BOUNDARY: u64 = 64 << 10;
const LIMIT: DeviceAddr = DeviceAddr(1 << 32);
/// The first pages of a PC are never allocated.
const TOO_LOW: DeviceAddr = DeviceAddr(64 << 10);

/// Runs it if it was asked for.
pub fn run() {
    if options::raw_values("dma.self_test").last() != Some("1") {
        return;
    }
    let mut met = 0;
    let outcome = all::<WriteBack>(&mut met)
        .and_then(|()| all::<WriteCombining>(&mut met))
        .and_then(|()| all::<Uncached>(&mut met))
        .and_then(|()| one::<WriteBack>(DmaRequest::new(64, 64).below(TOO_LOW), &mut met));
    if let Err(error) = outcome {
        klog!("device self-test refused: {met} requests were met, the next not: {error}");
    }
}

fn all<M: MemoryType>(met: &mut usize) -> Result<(), DmaError> {
    for bytes in SIZES {
        for align in ALIGNMENTS {
            let request = DmaRequest::new(bytes, align);
            for request in [request, request.within(BOUNDARY), request.below(LIMIT)] {
                one::<M>(request, met)?;
                // What was given back comes again, zeroed.
                one::<M>(request, met)?;
            }
        }
    }
    Ok(())
}

/// The source itself panics where its memory does not meet the request.
fn one<M: MemoryType>(request: DmaRequest, met: &mut usize) -> Result<(), DmaError> {
    let memory: DmaBuf<M> = DmaMemory::Shared.dma_alloc(&request)?;
    let last = request.bytes() - 8;
    for at in [0, last] {
        assert_eq!(memory.read_u64(at), 0, "memory for devices is zeroed");
        memory.write_u64(at, !0);
        assert_eq!(memory.read_u64(at), !0);
    }
    *met += 1;
    Ok(())
}
