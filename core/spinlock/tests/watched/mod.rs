//! Words whose orders loom tries.

use loom::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};
use spinlock::{Counter, Family, Small};

#[derive(Default, Debug)]
pub struct Byte(AtomicU8);

#[derive(Default, Debug)]
pub struct Name(AtomicU16);

macro_rules! watched {
    ($word:ty, $value:ty) => {
        impl Small<$value> for $word {
            fn load(&self, order: Ordering) -> $value {
                self.0.load(order)
            }

            fn store(&self, value: $value, order: Ordering) {
                self.0.store(value, order);
            }

            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.0.swap(value, order)
            }

            fn replace(&self, old: $value, new: $value, order: Ordering) -> bool {
                let success = self.0.compare_exchange(old, new, order, Ordering::Relaxed);
                success.is_ok()
            }
        }
    };
}
watched!(Byte, u8);
watched!(Name, u16);

#[derive(Default, Debug)]
pub struct Counted(AtomicU32);

impl Counter for Counted {
    fn load(&self, order: Ordering) -> u32 {
        self.0.load(order)
    }

    fn add(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_add(value, order)
    }

    fn sub(&self, value: u32, order: Ordering) {
        self.0.fetch_sub(value, order);
    }
}

#[derive(Debug)]
pub struct Watched;

impl Family for Watched {
    type Byte = Byte;
    type Name = Name;
    type Counter = Counted;
}
