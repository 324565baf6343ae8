//! The signal mask that some calls wait with.

use base::VirtAddr;
use mm::user;
use sync::{Error, Result};
use task::signal::{self, SignalSet};

use crate::call::Call;

/// Exchanges the caller's mask for the one that argument `at` points to, if any, until
/// the call is over or a handler has run; argument `size` is its length.
pub fn exchange_for_call(call: &Call<'_>, at: usize, size: usize) -> Result<()> {
    exchange(call, call.arg(at), call.arg(size))
}

/// The same for a mask at address `at`, of `size` bytes; 0 for none.
pub fn exchange(call: &Call<'_>, at: u64, size: u64) -> Result<()> {
    if at == 0 {
        return Ok(());
    }
    if size != size_of::<u64>() as u64 {
        return Err(Error::Invalid);
    }
    let mask: u64 = user::read(VirtAddr(at))?;
    signal::set_mask_for_call(call.thread, SignalSet(mask));
    Ok(())
}
