//! Requests from CPU to CPU that are served even by one that spins.
//!
//! A CPU in the kernel takes no interrupts, so what another one needs from it at once (a
//! TLB shootdown) is served in three places: the interrupt handler, [`super::relax`] and
//! the end of a halt. The server is registered once; it must be cheap when there is
//! nothing to do, and may run with any lock held, so it takes none.

use super::CpuId;
use crate::sync::Once;
use crate::vector::Vector;

/// Said once at boot: a CPU that waits for another serves it, wherever it is.
static SERVER: Once<fn()> = Once::new();

/// Says who serves requests; once at boot.
pub fn register_service(serve: fn()) {
    SERVER.call_once(|| serve);
}

/// Makes `cpu` run the server soon, wherever it is.
pub fn request_service(cpu: CpuId) {
    arch::apic::send(super::apic_id(cpu), Vector::SERVICE.number());
}

#[inline]
pub(crate) fn serve() {
    if let Some(serve) = SERVER.get() {
        serve();
    }
}

/// Handler of [`Vector::SERVICE`].
pub(crate) fn interrupt(_: usize) {
    serve();
}
