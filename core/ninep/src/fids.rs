//! The numbers by which the client names the server's files.

use alloc::vec::Vec;

/// Names a file of the server for this client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fid(pub u32);

/// "No file": no authentication in `Attach`.
pub const NO_FID: Fid = Fid(u32::MAX);

/// Hands out fids that the server does not know yet.
///
/// A fid is given back only after the server answered its `Clunk`: until then the
/// server still knows it.
#[derive(Debug, Default)]
pub struct Fids {
    next: u32,
    free: Vec<Fid>,
}

impl Fids {
    /// None in use.
    pub const fn new() -> Self {
        Self {
            next: 0,
            free: Vec::new(),
        }
    }

    /// A fid that is not in use; `None` after four billion.
    pub fn alloc(&mut self) -> Option<Fid> {
        if let Some(fid) = self.free.pop() {
            return Some(fid);
        }
        let fid = Fid(self.next);
        self.next = self.next.checked_add(1)?;
        Some(fid)
    }

    /// The server has forgotten `fid`.
    pub fn release(&mut self, fid: Fid) {
        self.free.push(fid);
    }

    /// Fids in use.
    pub fn used(&self) -> usize {
        self.next as usize - self.free.len()
    }
}
