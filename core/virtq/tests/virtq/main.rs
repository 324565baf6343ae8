//! Queues against a simulated device, over a simulated bus.

mod honest;
mod hostile;

use hal::caching::WriteBack;
use hal::owner::Shared;
use hal::sim::SimMemory;
use hal::{DmaBuf, DmaRequest, DmaSource};

/// Data that both sides reach.
type SharedBuf = DmaBuf<WriteBack, Shared>;

fn shared(memory: &SimMemory, bytes: usize) -> SharedBuf {
    let data: DmaBuf = memory.dma_alloc(&DmaRequest::new(bytes, 64)).unwrap();
    data.share()
}
