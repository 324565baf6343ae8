//! A value that is made when it is first used.

use core::ops::Deref;

use super::Once;

/// A static whose value needs code that cannot run at compile time.
pub struct Lazy<T> {
    cell: Once<T>,
    make: fn() -> T,
}

impl<T> Lazy<T> {
    /// A value that `make` will make.
    pub const fn new(make: fn() -> T) -> Self {
        Self {
            cell: Once::new(),
            make,
        }
    }
}

impl<T> Deref for Lazy<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.cell.call_once(self.make)
    }
}
