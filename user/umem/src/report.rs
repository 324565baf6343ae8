//! What is said before the program ends, without allocating.

use slab::BadFree;

use crate::sizes::SizeClass;

/// A line that is built on the stack.
pub struct Line {
    text: [u8; 256],
    len: usize,
}

impl Line {
    pub fn new() -> Self {
        Self {
            text: [0; 256],
            len: 0,
        }
    }

    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        for &byte in bytes {
            if let Some(slot) = self.text.get_mut(self.len) {
                *slot = byte;
                self.len += 1;
            }
        }
        self
    }

    pub fn number(self, number: usize, base: usize) -> Self {
        let digits = b"0123456789abcdef";
        let mut text = [0; 20];
        let (mut rest, mut start) = (number, text.len());
        while start == text.len() || rest > 0 {
            start -= 1;
            text[start] = digits[rest % base];
            rest /= base;
        }
        let digits = core::str::from_utf8(&text[start..]).unwrap_or("?");
        self.text(digits)
    }

    pub fn address(self, address: usize) -> Self {
        self.text("0x").number(address, 16)
    }

    pub fn write(self) {
        // SAFETY: the bytes are ours; a closed standard error is no harm.
        unsafe { libc::write(2, self.text.as_ptr().cast(), self.len) };
    }
}

/// Ends the program: an object was freed that is free already, or none starts there.
#[cold]
pub fn bad_free(bad: BadFree, class: SizeClass) -> ! {
    let (what, object) = match bad {
        BadFree::Twice(object) => ("double free of ", object),
        BadFree::Inside(object) => ("free inside of an object: ", object),
    };
    Line::new()
        .text("umem: ")
        .text(what)
        .address(object.addr().get())
        .text(" in cache umem_alloc_")
        .number(class.limit(), 10)
        .text("\n")
        .write();
    abort()
}

/// Ends the process.
pub fn abort() -> ! {
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}
